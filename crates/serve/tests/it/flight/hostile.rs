//! Any request of a user who may read ends in an answer or an error, and changes nothing.
// The seed of a run is told, so that a failure can be repeated.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Duration;

use arrow_flight::FlightData;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::flight_service_client::FlightServiceClient;
use coload_serve::ServeLimits;
use coload_serve::arrow::array::{ArrayRef, Int64Array, StringArray};
use coload_serve::arrow::record_batch::RecordBatch;
use futures::TryStreamExt;
use tokio::runtime::Runtime;
use tonic::Code;

use super::requests::{Bytes, send};
use super::statements::csv;
use super::{channel, limited_users};

/// Requests that are tried.
const ROUNDS: usize = 1_500;
/// Bytes of which one request is made, at most.
const INPUT_BYTES: usize = 200;

/// A schema and rows, as a client sends them.
fn whole() -> Vec<FlightData> {
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let names: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), Some("bc"), None]));
    let batch = RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap();
    let batches = futures::stream::iter([Ok(batch)]);
    let encoder = FlightDataEncoderBuilder::new().build(batches);
    Runtime::new().unwrap().block_on(encoder.try_collect()).unwrap()
}

#[test]
fn any_request_of_a_reader_is_answered_and_changes_nothing() {
    let running = limited_users(ServeLimits::default());
    let mut ada = running.client_of("ada", "ada").unwrap();
    csv(&mut ada, "CREATE TABLE people AS SELECT 'x' AS name");
    csv(&mut ada, "CREATE TABLE secret AS SELECT 1 AS n");
    let before = running.scratch.database.store().snapshot().unwrap().version();
    let whole = whole();
    let seed = std::env::var("COLOAD_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(7_u64);
    println!("COLOAD_SEED={seed}");
    let mut state = seed;
    let mut next = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let token = "Bearer rob.rob";
    Runtime::new().unwrap().block_on(async {
        let mut client = FlightServiceClient::new(channel(running.address).await);
        for round in 0..ROUNDS {
            let input: Vec<u8> = (0..next() % INPUT_BYTES).map(|_| next() as u8).collect();
            let mut bytes = Bytes(&input);
            let sent = send(&mut client, token, &mut bytes, &whole);
            let code = tokio::time::timeout(Duration::from_secs(60), sent).await;
            let code =
                code.unwrap_or_else(|_| panic!("round {round} of {seed} has no end: {input:?}"));
            assert!(
                !matches!(code, Code::Internal | Code::Unknown),
                "round {round}: {code:?} {input:?}"
            );
        }
    });
    assert_eq!(running.scratch.database.store().snapshot().unwrap().version(), before);
    assert_eq!(csv(&mut ada, "SELECT * FROM people"), "x\n");
}
