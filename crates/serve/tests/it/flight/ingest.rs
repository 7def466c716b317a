//! Ingests of many rows: batches of any size become fragments and segments, and nothing where one of them fails.

use std::sync::Arc;

use arrow_flight::flight_service_client::FlightServiceClient;
use coload_serve::arrow::array::{ArrayRef, Date32Array, Decimal128Array, Int64Array, StringArray};
use coload_serve::arrow::record_batch::RecordBatch;
use futures::TryStreamExt;
use tokio::runtime::Runtime;

use super::faults::messages;
use super::statements::csv;
use super::{Running, channel};

/// Rows `from..from + rows`: a counter, a text of few values with NULLs, an amount, a day, a text of many values.
fn batch(from: i64, rows: i64) -> RecordBatch {
    let all = from..from + rows;
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(all.clone()));
    let few = |n: i64| (n % 7 != 0).then(|| ["red", "blue", "dark grey"][n as usize % 3]);
    let colour: ArrayRef = Arc::new(all.clone().map(few).collect::<StringArray>());
    let amount = Decimal128Array::from_iter_values(all.clone().map(|n| i128::from(n % 1_000)));
    let amount: ArrayRef = Arc::new(amount.with_precision_and_scale(15, 2).unwrap());
    let day: ArrayRef =
        Arc::new(Date32Array::from_iter_values(all.clone().map(|n| 8_000 + (n % 2_500) as i32)));
    let note: ArrayRef =
        Arc::new(StringArray::from_iter_values(all.map(|n| format!("note {n} é"))));
    let columns =
        [("id", id), ("colour", colour), ("amount", amount), ("day", day), ("note", note)];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn batches(sizes: &[i64]) -> (Vec<RecordBatch>, i64) {
    let mut rows = 0;
    let mut next = |size: &i64| {
        rows += size;
        batch(rows - size, *size)
    };
    (sizes.iter().map(&mut next).collect(), rows)
}

fn ingest(running: &Running, batches: Vec<RecordBatch>) -> Result<usize, tonic::Status> {
    let runtime = Runtime::new().unwrap();
    let sent = messages(&runtime, batches);
    runtime.block_on(async {
        let mut flight = FlightServiceClient::new(channel(running.address).await)
            .max_encoding_message_size(usize::MAX);
        let put = flight.do_put(futures::stream::iter(sent)).await?;
        Ok(put.into_inner().try_collect::<Vec<_>>().await?.len())
    })
}

/// More rows than a segment has fragments for, in batches that are none of them a fragment.
#[test]
fn rows_are_those_that_were_sent_whatever_the_sizes_of_batches() {
    let running = Running::start();
    for sizes in [&[1, 70_000, 3, 0, 131_072, 65_536, 200_000][..], &[7; 300][..], &[2]] {
        let (sent, rows) = batches(sizes);
        assert_eq!(ingest(&running, sent).unwrap(), 1);
        let mut client = running.client();
        let asked = "SELECT count(*), count(DISTINCT id), min(id), max(id), sum(amount), count(colour), \
                     sum(CASE WHEN note = 'note ' || id || ' é' AND day = DATE '1991-11-27' + CAST(id % 2500 AS INT) \
                     AND colour IS NOT DISTINCT FROM CASE WHEN id % 7 = 0 THEN NULL WHEN id % 3 = 0 THEN 'red' \
                     WHEN id % 3 = 1 THEN 'blue' ELSE 'dark grey' END THEN 1 ELSE 0 END) FROM t";
        let amounts: i64 = (0..rows).map(|n| n % 1_000).sum();
        let colours = (0..rows).filter(|n| n % 7 != 0).count();
        let told = csv(&mut client, asked);
        let expected = format!(
            "{rows},{rows},0,{},{}.{:02},{colours},{rows}",
            rows - 1,
            amounts / 100,
            amounts % 100
        );
        assert!(told.contains(&expected), "{told}: expected {expected}");
        client.query("DROP TABLE t").unwrap();
    }
}

/// Rows are written while later ones come: an error of some of them is told with a later batch or at the end.
#[test]
fn a_value_that_does_not_fit_leaves_nothing_of_the_rows_before_it() {
    let running = Running::start();
    let mut client = running.client();
    client
        .query(
            "CREATE TABLE t (id BIGINT, colour VARCHAR(20), amount DECIMAL(15,2), day DATE, \
             note VARCHAR(20), CHECK (id <> 150000))",
        )
        .unwrap();
    let left = || {
        let temporary = running.scratch.dir.path().join("store/tmp");
        std::fs::read_dir(temporary).unwrap().count()
    };
    let broken = |sent: Vec<RecordBatch>, said: &str| {
        let error = ingest(&running, sent).unwrap_err();
        assert!(error.message().contains(said), "{error}");
        assert!(csv(&mut running.client(), "SELECT count(*) FROM t").contains('0'));
        assert_eq!(left(), 0);
    };
    let (sent, _) = batches(&[65_536, 65_536, 65_536, 65_536]);
    broken(sent, "CHECK");
    let (mut sent, _) = batches(&[65_536, 65_536]);
    let mut columns = batch(0, 3).columns().to_vec();
    columns[4] = Arc::new(StringArray::from(vec!["fits", "much too long for the column", "x"]));
    sent.insert(1, RecordBatch::try_new(sent[0].schema(), columns).unwrap());
    broken(sent, "column note");
}
