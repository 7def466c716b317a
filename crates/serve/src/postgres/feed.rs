//! Rows of COPY .. FROM STDIN on their way into a load.
//!
//! ```text
//!   CopyData --queue of some messages--> a reader of the load's      CopyDone: the end     all else: the load is given up
//! ```

use std::io::{self, Read};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use coload_threads::lock;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::copy::{CopyFormat, CopyIn, Rows};
use super::copy_binary::BinaryRows;
use super::fault::{Fault, code};
use super::message::{Format, Message};
use super::session::Session;
use super::wire::Ended;
use crate::external::{hold, run_load};
use crate::names::{find_table, missing_table};
use crate::rights::Role;

/// Messages that wait to be read.
const WAITING_MAX: usize = 8;

/// Runs the load and tells how many rows it added.
///
/// # Errors
/// What is wrong with the rows or the load; then no row is there.
pub(super) async fn copy_in(
    session: &mut Session,
    copy: &CopyIn,
    text: &str,
) -> Result<i64, Ended> {
    let database = session.service.database().clone();
    let (snapshot, _) = database.newest().map_err(Fault::from)?;
    let rights = session.rights.clone();
    let table = find_table(&snapshot, &copy.table).map(|index| &snapshot.tables()[index]);
    let table = table
        .filter(|table| rights.may_read(&table.name))
        .ok_or_else(|| Fault::from(missing_table(&snapshot, &rights, &copy.table)))?;
    rights.require(Role::Load, &table.name).map_err(Fault::from)?;
    let mut request = copy.request(&table.name, &table.schema).map_err(Fault::from)?;
    let types: Vec<_> = request.read_schema().columns().iter().map(|c| c.data_type).collect();
    let columns = types.len();
    let (rows, format) = match copy.form.format {
        CopyFormat::Binary => {
            (Sent::Binary(BinaryRows::new(types, copy.form.clone())), Format::Binary)
        }
        CopyFormat::Text | CopyFormat::Csv => (Sent::Text(Rows::default()), Format::Text),
    };
    let held = hold(&database).ok_or_else(|| {
        let text =
            "there is not enough memory for a load now: try again, or raise --memory of the server";
        Fault::error(code::LIMIT, text)
    })?;
    let (sender, receiver) = channel(WAITING_MAX);
    let is_whole = Arc::new(AtomicBool::new(false));
    let input = Mutex::new(Some(Input {
        receiver,
        rest: Vec::new(),
        at: 0,
        is_whole: Arc::clone(&is_whole),
    }));
    request.streams = Some(Arc::new(move |_| match lock(&input).take() {
        Some(input) => Box::new(input),
        None => Box::new(Once),
    }));
    let own = database.clone();
    let load = async move { run_load(&own, || Ok(request), held).await };
    let load = async {
        let loaded = database.spawn_owned(load).await;
        loaded.map_err(|e| coload_types::Error::Refused(format!("internal error: {e}")))?
    };
    session.wire.replies.copy_in(columns, format);
    session.wire.send().await?;
    let (service, wire) = (session.service.clone(), &mut session.wire);
    let feed = feed(wire, (rows, sender), &is_whole);
    let mut place = service.running(&session.key, &rights);
    let loaded = async {
        tokio::select! {
            written = service.write(&rights, text, load) => written,
            () = place.cancelled() => Err(crate::flight::cancelled()),
        }
    };
    let (loaded, fed) = tokio::join!(loaded, feed);
    // Why the client gave up comes before what the load says of it.
    fed?;
    loaded.map_err(|status| Fault::from(status).into())
}

/// Hands the rows on until the client says that they are all, or the load has ended.
async fn feed(
    wire: &mut super::wire::Wire,
    (mut rows, sender): (Sent, Sender<Vec<u8>>),
    is_whole: &AtomicBool,
) -> Result<(), Ended> {
    loop {
        let piece = match wire.read().await? {
            Message::CopyData(bytes) => rows.take(&bytes)?,
            Message::CopyDone => {
                let rest = rows.end()?;
                let sent = rest.is_empty() || sender.send(rest).await.is_ok();
                is_whole.store(sent, Ordering::Release);
                return Ok(());
            }
            Message::CopyFail(why) => {
                return Err(Fault::error(
                    code::CANCELLED,
                    format!("COPY was given up by the client: {why}"),
                )
                .into());
            }
            Message::Flush | Message::Sync => continue,
            Message::Terminate => return Err(Ended::Gone),
            _ => return Err(Fault::fatal(code::PROTOCOL, "rows of a COPY were to come").into()),
        };
        // A load that has ended says itself why.
        if !piece.is_empty() && sender.send(piece).await.is_err() {
            return Ok(());
        }
    }
}

/// Rows as the client sends them.
enum Sent {
    Text(Rows),
    Binary(BinaryRows),
}

impl Sent {
    /// The text of the rows that have come.
    fn take(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Fault> {
        match self {
            Sent::Text(rows) => rows.take(bytes),
            Sent::Binary(rows) => rows.take(bytes),
        }
    }

    /// What is left of it when nothing follows.
    fn end(self) -> Result<Vec<u8>, Fault> {
        match self {
            Sent::Text(rows) => Ok(rows.end()),
            Sent::Binary(rows) => rows.end().map(|()| Vec::new()),
        }
    }
}

/// The rows as bytes.
struct Input {
    receiver: Receiver<Vec<u8>>,
    rest: Vec<u8>,
    at: usize,
    /// Whether the client has said that these are all.
    is_whole: Arc<AtomicBool>,
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.rest.len() {
            match self.receiver.blocking_recv() {
                Some(piece) => (self.rest, self.at) = (piece, 0),
                None if self.is_whole.load(Ordering::Acquire) => return Ok(0),
                // Half of the rows are never taken for all of them.
                None => return Err(io::Error::other("the client ended within its rows")),
            }
        }
        let count = buffer.len().min(self.rest.len() - self.at);
        buffer[..count].copy_from_slice(&self.rest[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// What a second look at rows finds that come once.
struct Once;

impl Read for Once {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("rows of COPY come once"))
    }
}
