//! `GetSchema`, `CancelFlightInfo` and `CancelQuery`, by the client of arrow-flight.

use std::time::{Duration, Instant};

use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, Any, CommandGetCatalogs,
    CommandGetCrossReference, CommandGetTableTypes, CommandGetTables,
    CommandPreparedStatementQuery, CommandStatementQuery, CommandStatementUpdate, ProstMessageExt,
};
use arrow_flight::{
    Action, CancelFlightInfoRequest, CancelStatus, FlightClient, FlightDescriptor, FlightInfo,
};
use coload_serve::{ServeLimits, ServeOptions};
use futures::TryStreamExt;
use prost::Message;
use tokio::runtime::Runtime;
use tonic::Code;
use tonic::transport::Channel;

use super::statements::csv;
use super::{Running, channel, here, users};

/// Does not end by itself while a test runs.
const ENDLESS: &str = "SELECT count(*) FROM generate_series(1, 2000000) a, generate_series(1, 2000000) b \
                       WHERE (a.value * b.value) % 7 = 3";
/// Rows without end, so that a client sees the first ones.
const ROWS: &str =
    "SELECT a.value FROM generate_series(1, 2000000) a, generate_series(1, 2000000) b";

fn descriptor(command: &impl ProstMessageExt) -> FlightDescriptor {
    FlightDescriptor::new_cmd(command.as_any().encode_to_vec())
}

fn query(text: &str) -> FlightDescriptor {
    descriptor(&CommandStatementQuery { query: text.into(), transaction_id: None })
}

async fn flight(running: &Running) -> FlightClient {
    FlightClient::new(channel(running.address).await)
}

async fn sql(running: &Running) -> FlightSqlServiceClient<Channel> {
    FlightSqlServiceClient::new(channel(running.address).await)
}

#[track_caller]
fn code<T: std::fmt::Debug>(answer: Result<T, FlightError>) -> Code {
    match answer {
        Err(FlightError::Tonic(status)) => status.code(),
        other => panic!("{other:?}"),
    }
}

/// Fetches an answer to its end and tells the status of that.
async fn end(running: &Running, info: &FlightInfo) -> Code {
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let fetched = match flight(running).await.do_get(ticket).await {
        Ok(rows) => rows.try_for_each(|_| async { Ok(()) }).await,
        Err(error) => Err(error),
    };
    fetched.map_or_else(|error| code::<()>(Err(error)), |()| Code::Ok)
}

async fn cancel(client: &mut FlightClient, info: &FlightInfo) -> Result<CancelStatus, FlightError> {
    let request = CancelFlightInfoRequest::new(info.clone());
    Ok(client.cancel_flight_info(request).await?.status())
}

/// As older clients ask.
async fn cancel_query(client: &mut FlightClient, info: &FlightInfo) -> Result<i32, FlightError> {
    let request = ActionCancelQueryRequest { info: info.encode_to_vec().into() };
    let action = Action::new("CancelQuery", request.as_any().encode_to_vec());
    let answers: Vec<_> = client.do_action(action).await?.try_collect().await?;
    let any = Any::decode(&*answers[0]).unwrap();
    Ok(any.unpack::<ActionCancelQueryResult>().unwrap().unwrap().result)
}

/// Waits until a statement runs.
pub fn until_running(running: &Running, count: usize) {
    let until = Instant::now() + Duration::from_secs(20);
    let line = format!("coload_statements_running {count}");
    while Instant::now() < until {
        if super::statements::metrics_page(running).lines().any(|l| l == line) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no {line}");
}

fn start() -> Running {
    Running::start_with(ServeOptions { metrics: Some(here()), ..ServeOptions::new(here()) })
}

#[test]
fn a_schema_is_told_without_running_what_it_is_of() {
    let running = Running::start();
    csv(&mut running.client(), "CREATE TABLE t (id BIGINT NOT NULL, price DECIMAL(10,2))");
    Runtime::new().unwrap().block_on(async {
        let mut client = flight(&running).await;
        for text in ["SELECT id, price, 'x' AS s FROM t", "INSERT INTO t VALUES (1, 2)", ENDLESS] {
            let schema = client.get_schema(query(text)).await.unwrap();
            if !text.starts_with("INSERT") {
                let info = client.get_flight_info(query(text)).await.unwrap();
                assert_eq!(info.try_decode_schema().unwrap(), schema, "{text}");
            }
        }
        // It did not insert.
        let count = "SELECT count(*) FROM t";
        let info = client.get_flight_info(query(count)).await.unwrap();
        let rows = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
        let batches: Vec<_> = rows.try_collect().await.unwrap();
        assert!(format!("{batches:?}").contains("[\n  0,\n]"), "{batches:?}");

        let mut sql = sql(&running).await;
        let prepared = sql.prepare("SELECT price FROM t WHERE id = ?".into(), None).await.unwrap();
        // The client does not tell its handle, but its schema is the same.
        let schema = client.get_schema(query("SELECT price FROM t WHERE id = ?")).await.unwrap();
        assert_eq!(prepared.dataset_schema().unwrap(), &schema);

        for (command, first) in [
            (descriptor(&CommandGetCatalogs {}), "catalog_name"),
            (descriptor(&CommandGetTables::default()), "catalog_name"),
            (descriptor(&CommandGetTableTypes {}), "table_type"),
            (descriptor(&CommandGetCrossReference::default()), "pk_catalog_name"),
        ] {
            let schema = client.get_schema(command.clone()).await.unwrap();
            assert_eq!(schema.field(0).name(), first);
            let info = client.get_flight_info(command).await.unwrap();
            assert_eq!(info.try_decode_schema().unwrap(), schema);
        }
        for (wrong, wanted) in [
            (query("SELEC 1"), Code::InvalidArgument),
            (query("SELECT * FROM nowhere"), Code::InvalidArgument),
            (FlightDescriptor::new_cmd(vec![0xff; 9]), Code::InvalidArgument),
            (FlightDescriptor::new_path(vec!["t".into()]), Code::Unimplemented),
            (
                descriptor(&CommandPreparedStatementQuery {
                    prepared_statement_handle: vec![7; 16].into(),
                }),
                Code::InvalidArgument,
            ),
            (
                descriptor(&CommandStatementUpdate {
                    query: "TRUNCATE t".into(),
                    transaction_id: None,
                }),
                Code::Unimplemented,
            ),
        ] {
            assert_eq!(code(client.get_schema(wrong).await), wanted);
        }
    });
}

#[test]
fn a_query_that_is_cancelled_ends_so_and_stops() {
    let running = start();
    for text in [ENDLESS, ROWS] {
        let runtime = Runtime::new().unwrap();
        let mut client = runtime.block_on(flight(&running));
        let info = runtime.block_on(client.get_flight_info(query(text))).unwrap();
        let address = running.address;
        let ticket = info.endpoint[0].ticket.clone().unwrap();
        let fetching = runtime.spawn(async move {
            let rows = FlightClient::new(channel(address).await).do_get(ticket).await?;
            rows.try_for_each(|_| async { Ok(()) }).await
        });
        until_running(&running, 1);
        let status = runtime.block_on(cancel(&mut client, &info)).unwrap();
        assert_eq!(status, CancelStatus::Cancelled, "{text}");
        assert_eq!(code(runtime.block_on(fetching).unwrap()), Code::Cancelled, "{text}");
        until_running(&running, 0);
        assert_eq!(code(runtime.block_on(cancel(&mut client, &info))), Code::NotFound);
    }
    assert_eq!(csv(&mut running.client(), "SELECT 1"), "1\n");
}

#[test]
fn older_clients_cancel_by_cancel_query() {
    let running = start();
    let runtime = Runtime::new().unwrap();
    let mut client = runtime.block_on(flight(&running));
    let info = runtime.block_on(client.get_flight_info(query(ENDLESS))).unwrap();
    std::thread::scope(|scope| {
        let fetching = scope.spawn(|| Runtime::new().unwrap().block_on(end(&running, &info)));
        until_running(&running, 1);
        // CANCEL_RESULT_CANCELLED.
        assert_eq!(runtime.block_on(cancel_query(&mut client, &info)).unwrap(), 1);
        assert_eq!(fetching.join().unwrap(), Code::Cancelled);
    });
    assert_eq!(code(runtime.block_on(cancel_query(&mut client, &info))), Code::NotFound);
}

#[test]
fn prepared_statements_are_cancelled_too() {
    let running = start();
    let runtime = Runtime::new().unwrap();
    let (mut prepared, mut client) = runtime.block_on(async {
        let prepared = sql(&running).await.prepare(ENDLESS.into(), None).await.unwrap();
        (prepared, flight(&running).await)
    });
    let info = runtime.block_on(prepared.execute()).unwrap();
    std::thread::scope(|scope| {
        let fetching = scope.spawn(|| Runtime::new().unwrap().block_on(end(&running, &info)));
        until_running(&running, 1);
        let status = runtime.block_on(cancel(&mut client, &info)).unwrap();
        assert_eq!(status, CancelStatus::Cancelled);
        assert_eq!(fetching.join().unwrap(), Code::Cancelled);
    });
    // It can be run again.
    assert_eq!(runtime.block_on(prepared.execute()).unwrap().endpoint, info.endpoint);
}

#[test]
fn a_query_can_be_cancelled_before_it_is_fetched() {
    let running = Running::start();
    Runtime::new().unwrap().block_on(async {
        let mut client = flight(&running).await;
        let info = client.get_flight_info(query("SELECT 1")).await.unwrap();
        assert_eq!(cancel(&mut client, &info).await.unwrap(), CancelStatus::Cancelled);
        assert_eq!(end(&running, &info).await, Code::Cancelled);
    });
}

#[test]
fn what_waits_for_its_turn_is_cancelled_there() {
    let options = ServeOptions {
        limits: ServeLimits { statements: 1, ..ServeLimits::default() },
        metrics: Some(here()),
        ..ServeOptions::new(here())
    };
    let running = Running::start_with(options);
    let runtime = Runtime::new().unwrap();
    let mut client = runtime.block_on(flight(&running));
    let [first, second] = [ENDLESS, "SELECT 1"]
        .map(|text| runtime.block_on(client.get_flight_info(query(text))).unwrap());
    std::thread::scope(|scope| {
        let fetch = |info| {
            let running = &running;
            scope.spawn(move || Runtime::new().unwrap().block_on(end(running, info)))
        };
        let runs = fetch(&first);
        until_running(&running, 1);
        let waits = fetch(&second);
        // Whether its call has come or not, it is cancelled.
        assert_eq!(
            runtime.block_on(cancel(&mut client, &second)).unwrap(),
            CancelStatus::Cancelled
        );
        assert_eq!(waits.join().unwrap(), Code::Cancelled);
        runtime.block_on(cancel(&mut client, &first)).unwrap();
        assert_eq!(runs.join().unwrap(), Code::Cancelled);
    });
}

#[test]
fn what_does_not_run_is_not_cancelled() {
    let running = Running::start();
    csv(&mut running.client(), "CREATE TABLE t (id BIGINT)");
    Runtime::new().unwrap().block_on(async {
        let mut client = flight(&running).await;
        let done = client.get_flight_info(query("SELECT 1")).await.unwrap();
        assert_eq!(end(&running, &done).await, Code::Ok);
        assert_eq!(code(cancel(&mut client, &done).await), Code::NotFound);

        let wrote = client.get_flight_info(query("INSERT INTO t VALUES (1)")).await.unwrap();
        assert_eq!(cancel(&mut client, &wrote).await.unwrap(), CancelStatus::NotCancellable);
        let tables = client.get_flight_info(descriptor(&CommandGetCatalogs {})).await.unwrap();
        assert_eq!(cancel(&mut client, &tables).await.unwrap(), CancelStatus::NotCancellable);

        let nothing = FlightInfo::default();
        assert_eq!(code(cancel(&mut client, &nothing).await), Code::InvalidArgument);
        for (action, wanted) in
            [("CancelFlightInfo", Code::InvalidArgument), ("Nonsense", Code::Unimplemented)]
        {
            let asked = client.do_action(Action::new(action, vec![])).await;
            assert_eq!(code(asked.map(|_| ())), wanted, "{action}");
        }
        let actions: Vec<_> = client.list_actions().await.unwrap().try_collect().await.unwrap();
        assert!(actions.iter().any(|a| a.r#type == "CancelFlightInfo"));
    });
    assert_eq!(csv(&mut running.client(), "SELECT * FROM t"), "1\n");
}

#[test]
fn nobody_cancels_what_another_runs() {
    let options =
        ServeOptions { users: users(), metrics: Some(here()), ..ServeOptions::new(here()) };
    let running = Running::start_with(options);
    let runtime = Runtime::new().unwrap();
    let of = |name: &str| {
        let mut client = runtime.block_on(flight(&running));
        client.add_header("authorization", &format!("Bearer {name}.{name}")).unwrap();
        client
    };
    let (mut ada, mut rob) = (of("ada"), of("rob"));
    let info = runtime.block_on(ada.get_flight_info(query(ENDLESS))).unwrap();
    // While it waits, and while it runs.
    assert_eq!(code(runtime.block_on(cancel(&mut rob, &info))), Code::NotFound);
    let mut fetcher = of("ada");
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let fetching = runtime.spawn(async move {
        fetcher.do_get(ticket).await?.try_for_each(|_| async { Ok(()) }).await
    });
    until_running(&running, 1);
    assert_eq!(code(runtime.block_on(cancel(&mut rob, &info))), Code::NotFound);
    assert_eq!(runtime.block_on(cancel(&mut ada, &info)).unwrap(), CancelStatus::Cancelled);
    assert_eq!(code(runtime.block_on(fetching).unwrap()), Code::Cancelled);
    let mut nobody = runtime.block_on(flight(&running));
    assert_eq!(code(runtime.block_on(cancel(&mut nobody, &info))), Code::Unauthenticated);
    assert_eq!(code(runtime.block_on(nobody.get_schema(query("SELECT 1")))), Code::Unauthenticated);
}
