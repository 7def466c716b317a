//! How far replicas of a server of MySQL are behind, which only they know: they are asked over connections of their own.
//!
//! A source lists those that tell their host (`report_host`). Who may not see the list, or not log in there, knows nothing of
//! them; a load goes on without. Most of what is here is asked once a second, while rows go.

use std::future::Future;
use std::sync::Mutex;
use std::time::Duration;

use coload_threads::lock;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Row};
use tokio::runtime::{Builder, Runtime};

use super::connection::MysqlConnection;
use crate::engine::Connection;

/// Most replicas that are asked.
const REPLICAS_MAX: usize = 8;
/// How long one may take to answer; it is not asked again if it takes longer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The list of replicas: number, host, port; by the words of newer servers and older ones.
const LISTS: [&str; 3] = ["SHOW REPLICAS", "SHOW REPLICA HOSTS", "SHOW SLAVE HOSTS"];
/// What a replica says of itself, by the words of MariaDB, of newer servers and of older ones.
const STATES: [&str; 3] = ["SHOW ALL SLAVES STATUS", "SHOW REPLICA STATUS", "SHOW SLAVE STATUS"];
/// The column that says how far it is behind.
const BEHIND: [&str; 2] = ["Seconds_Behind_Master", "Seconds_Behind_Source"];

/// Replicas of a server.
#[derive(Default)]
pub struct Replicas(Mutex<Option<Vec<Replica>>>);

impl std::fmt::Debug for Replicas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Replicas")
    }
}

impl Replicas {
    /// Seconds that the slowest is behind; `None` where nobody tells. The first time they are asked for by a connection to the
    /// server.
    pub fn lag_s(&self, opts: &Opts, on: &mut MysqlConnection) -> Option<f64> {
        let mut known = lock(&self.0);
        let replicas = known.get_or_insert_with(|| {
            let hosts = hosts(on).into_iter().take(REPLICAS_MAX);
            hosts.filter_map(|(host, port)| Replica::open(opts, host, port)).collect()
        });
        let mut most: Option<f64> = None;
        replicas.retain_mut(|replica| match replica.lag_s() {
            Some(lag) => {
                most = lag.into_iter().chain(most).reduce(f64::max);
                true
            }
            None => false,
        });
        most
    }
}

/// Hosts and ports of the replicas that tell them.
fn hosts(on: &mut MysqlConnection) -> Vec<(String, u16)> {
    let listed = LISTS.into_iter().find_map(|sql| on.ask(sql, &[]).ok());
    let host = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter().skip(1);
        let host = cells.next().flatten().filter(|host| !host.is_empty())?;
        Some((host, cells.next().flatten()?.parse().ok()?))
    };
    listed.unwrap_or_default().into_iter().filter_map(host).collect()
}

/// A connection to a replica.
struct Replica {
    runtime: Runtime,
    conn: Conn,
    /// The statement that it takes.
    state_sql: &'static str,
}

impl Replica {
    /// Connects as to the server; `None` where that is not to be had.
    fn open(opts: &Opts, host: String, port: u16) -> Option<Self> {
        let builder = OptsBuilder::from_opts(opts.clone()).ip_or_hostname(host).tcp_port(port);
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let mut conn = runtime.block_on(within(Conn::new(builder)))?;
        let state_sql = STATES.into_iter().find(|sql| {
            runtime
                .block_on(within(conn.query::<Row, _>(*sql)))
                .is_some_and(|rows| !rows.is_empty())
        })?;
        Some(Replica { runtime, conn, state_sql })
    }

    /// Seconds that it is behind, where it knows; `None` if it does not answer.
    fn lag_s(&mut self) -> Option<Option<f64>> {
        let Replica { runtime, conn, state_sql } = self;
        let rows = runtime.block_on(within(conn.query::<Row, _>(*state_sql)))?;
        // A server may have several sources.
        Some(rows.iter().filter_map(behind).reduce(f64::max))
    }
}

/// What becomes of a call in time.
async fn within<T>(call: impl Future<Output = mysql_async::Result<T>>) -> Option<T> {
    tokio::time::timeout(PATIENCE, call).await.ok()?.ok()
}

/// Seconds that a row tells; none while it does not copy.
fn behind(row: &Row) -> Option<f64> {
    let columns = row.columns_ref().iter();
    let at = columns.enumerate().find_map(|(at, column)| {
        let name = column.name_str();
        BEHIND.iter().any(|behind| name.eq_ignore_ascii_case(behind)).then_some(at)
    })?;
    row.get_opt::<Option<u64>, _>(at)?.ok().flatten().map(|seconds| seconds as f64)
}
