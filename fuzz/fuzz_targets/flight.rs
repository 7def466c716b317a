//! Requests of a user who may only read end in an answer or an error, and change nothing.
#![no_main]

#[path = "../../crates/serve/tests/it/flight/requests.rs"]
mod requests;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;

use arrow_flight::FlightData;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::flight_service_client::FlightServiceClient;
use coload_serve::arrow::array::{ArrayRef, Int64Array};
use coload_serve::arrow::record_batch::RecordBatch;
use coload_serve::{Database, DatabaseOptions, ServeOptions, Server, Users, hash_password};
use coload_store::Store;
use futures::TryStreamExt;
use libfuzzer_sys::fuzz_target;
use requests::{Bytes, send};
use tokio::runtime::Runtime;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

/// A server that runs as long as the process, and a client of it.
struct Running {
    database: Database,
    version: u64,
    client: FlightServiceClient<Channel>,
    whole: Vec<FlightData>,
    runtime: Runtime,
}

fn start() -> Running {
    let folder = tempfile::tempdir().expect("a folder").keep();
    let store = Store::create_or_open(folder.join("store")).expect("a store");
    let database = Database::open(store, DatabaseOptions { threads: 2, ..Default::default() });
    let database = database.expect("a database");
    database.query("CREATE TABLE people AS SELECT 'x' AS name").expect("a table");
    let hash = hash_password("rob").expect("a hash");
    let users = Users::parse(&format!("rob {hash} read:people"), "users").expect("users");
    let listen: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    let options = ServeOptions { users, ..ServeOptions::new(listen) };
    let server = Server::bind(database.clone(), options).expect("a server");
    let address = server.address().expect("an address");
    std::thread::spawn(move || server.run(std::future::pending()));
    let runtime = Runtime::new().expect("a runtime");
    let ids: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let batch = RecordBatch::try_from_iter([("id", ids)]).expect("a batch");
    let (client, whole) = runtime.block_on(async {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        let encoder = FlightDataEncoderBuilder::new().build(futures::stream::iter([Ok(batch)]));
        let whole = encoder.try_collect().await.expect("messages");
        (FlightServiceClient::new(endpoint.connect().await.expect("a connection")), whole)
    });
    let version = database.store().snapshot().expect("a version").version();
    Running { database, version, client, whole, runtime }
}

fuzz_target!(|input: &[u8]| {
    static RUNNING: OnceLock<Running> = OnceLock::new();
    let running = RUNNING.get_or_init(start);
    let mut client = running.client.clone();
    let code = running.runtime.block_on(async {
        send(&mut client, "Bearer rob.rob", &mut Bytes(input), &running.whole).await
    });
    assert!(!matches!(code, Code::Internal | Code::Unknown), "{code:?}");
    let version = running.database.store().snapshot().expect("a version").version();
    assert_eq!(version, running.version);
});
