//! Clients that go away, lie, or are too many, and the end of a server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{
    CommandStatementIngest, ProstMessageExt, TableDefinitionOptions, TableExistsOption,
    TableNotExistOption,
};
use arrow_flight::{FlightData, FlightDescriptor, Ticket};
use coload_serve::arrow::array::{ArrayRef, Int64Array};
use coload_serve::arrow::record_batch::RecordBatch;
use coload_serve::{ServeLimits, ServeOptions};
use coload_types::Error;
use futures::{StreamExt, TryStreamExt};
use prost::Message;
use tokio::runtime::Runtime;
use tonic::Code;
use tonic::transport::Channel;

use super::statements::csv;
use super::{Running, channel, here, limited};

/// Takes a second or some.
pub const SLOW: &str = "SELECT count(*) FROM generate_series(1, 2000) a, generate_series(1, 2500) b \
                    WHERE (a.value * b.value) % 7 = 3";

pub fn batch(rows: i64) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    RecordBatch::try_from_iter([("id", ids)]).unwrap()
}

fn ingest_command(table: &str) -> CommandStatementIngest {
    CommandStatementIngest {
        table_definition_options: Some(TableDefinitionOptions {
            if_not_exist: TableNotExistOption::Create as i32,
            if_exists: TableExistsOption::Append as i32,
        }),
        table: table.into(),
        ..CommandStatementIngest::default()
    }
}

/// An ingest as its messages.
pub fn messages(runtime: &Runtime, batches: Vec<RecordBatch>) -> Vec<FlightData> {
    let descriptor = FlightDescriptor::new_cmd(ingest_command("t").as_any().encode_to_vec());
    let batches = futures::stream::iter(batches.into_iter().map(Ok));
    let encoder = FlightDataEncoderBuilder::new().with_flight_descriptor(Some(descriptor));
    runtime.block_on(encoder.build(batches).try_collect()).unwrap()
}

async fn client(running: &Running) -> FlightServiceClient<Channel> {
    FlightServiceClient::new(channel(running.address).await)
}

#[test]
fn an_ingest_whose_client_goes_away_leaves_nothing() {
    let running = Running::start();
    let runtime = Runtime::new().unwrap();
    let sent = messages(&runtime, vec![batch(1_000); 3]);
    runtime.block_on(async {
        let mut flight = client(&running).await;
        // All batches, but no end.
        let stream = futures::stream::iter(sent).chain(futures::stream::pending());
        let put = flight.do_put(stream);
        let answered = tokio::time::timeout(Duration::from_millis(500), put).await;
        assert!(answered.is_err(), "answered before the end");
    });
    drop(runtime);
    let writes =
        || std::fs::read_dir(running.scratch.dir.path().join("store/tmp")).unwrap().count();
    let until = Instant::now() + Duration::from_secs(20);
    while writes() > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(writes(), 0);
    let error = running.client().query("SELECT * FROM t").unwrap_err();
    assert!(error.to_string().contains('t'), "{error}");
}

#[test]
fn messages_that_are_no_arrow_are_refused_and_the_server_lives() {
    let running = Running::start();
    let runtime = Runtime::new().unwrap();
    let good = messages(&runtime, vec![batch(1_000)]);
    let mut hostile: Vec<Vec<FlightData>> = vec![
        // Rows without a schema, a second schema, no command, a command that is none.
        vec![FlightData {
            flight_descriptor: good[0].flight_descriptor.clone(),
            ..good[1].clone()
        }],
        vec![good[0].clone(), good[0].clone(), good[1].clone()],
        vec![FlightData { flight_descriptor: None, ..good[0].clone() }],
        vec![FlightData {
            flight_descriptor: Some(FlightDescriptor::new_cmd(vec![0xff; 40])),
            ..FlightData::default()
        }],
    ];
    // Damage of every kind: bits, lengths, bodies cut short.
    let mut state = 7_u64;
    for round in 0..400 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let at = (state >> 33) as usize;
        let mut sent = good.clone();
        let message = &mut sent[round % 2];
        let mut header = message.data_header.to_vec();
        match round % 5 {
            4 => message.data_body = message.data_body.slice(..at % (message.data_body.len() + 1)),
            3 => header.truncate(at % header.len()),
            _ => {
                let at = at % header.len();
                header[at] ^= 1 << (round % 8);
            }
        }
        message.data_header = header.into();
        hostile.push(sent);
    }
    for (number, sent) in hostile.into_iter().enumerate() {
        let answer = runtime.block_on(async {
            let mut flight = client(&running).await;
            let put = flight.do_put(futures::stream::iter(sent)).await;
            match put {
                Ok(answer) => answer.into_inner().try_collect::<Vec<_>>().await,
                Err(status) => Err(status),
            }
        });
        // Some damage changes a name or a length that nobody reads.
        if let Err(status) = answer {
            assert_ne!(status.code(), Code::Internal, "{number}: {status}");
        }
    }
    assert_eq!(csv(&mut running.client(), "SELECT 1"), "1\n");
}

#[test]
fn tickets_and_handles_that_nobody_gave_out_are_refused() {
    let running = Running::start();
    Runtime::new().unwrap().block_on(async {
        let mut flight = client(&running).await;
        for ticket in [vec![], vec![1, 2, 3], vec![0xff; 100]] {
            let refused = flight.do_get(Ticket::new(ticket)).await.unwrap_err();
            assert_ne!(refused.code(), Code::Internal, "{refused}");
        }
        let mut sql = FlightSqlServiceClient::new_from_inner(flight);
        let mut prepared = sql.prepare("SELECT 1".to_owned(), None).await.unwrap();
        let info = prepared.execute().await.unwrap();
        let ticket = info.endpoint[0].ticket.clone().unwrap();
        assert_eq!(
            sql.do_get(ticket.clone()).await.unwrap().try_collect::<Vec<_>>().await.unwrap().len(),
            1
        );
        prepared.close().await.unwrap();
        assert!(sql.do_get(ticket).await.is_err());
    });
}

#[test]
fn a_message_over_the_limit_is_refused() {
    let running = limited(ServeLimits { message_bytes: 64 << 10, ..ServeLimits::default() });
    let runtime = Runtime::new().unwrap();
    let sent = messages(&runtime, vec![batch(100_000)]);
    let status = runtime.block_on(async {
        client(&running).await.do_put(futures::stream::iter(sent)).await.unwrap_err()
    });
    assert!(status.message().contains("larg") || status.message().contains("limit"), "{status}");
    assert!(running.client().query("SELECT * FROM t").is_err());
}

#[test]
fn a_server_that_is_asked_to_stop_finishes_what_runs() {
    let mut running = Running::start();
    let mut client = running.client();
    let slow = std::thread::spawn(move || csv(&mut client, SLOW));
    std::thread::sleep(Duration::from_millis(300));
    running.ask_to_stop();
    assert_ne!(slow.join().unwrap(), "");
    running.wait();
    let refused = coload_serve::Remote::connect(running.url(), &Default::default());
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
}

#[test]
fn what_takes_longer_than_the_grace_is_cut() {
    let mut running = Running::start_with(ServeOptions {
        grace: Duration::from_millis(200),
        ..ServeOptions::new(here())
    });
    let mut client = running.client();
    let endless = format!("{SLOW} AND a.value < 0 OR b.value > 0 AND sqrt(a.value) > -1");
    let endless = endless.replace("2000)", "2000000)");
    let cut = std::thread::spawn(move || client.query(&endless).unwrap_err());
    std::thread::sleep(Duration::from_millis(300));
    let asked = Instant::now();
    running.ask_to_stop();
    running.wait();
    assert!(asked.elapsed() < Duration::from_secs(10));
    let error = cut.join().unwrap();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
}
