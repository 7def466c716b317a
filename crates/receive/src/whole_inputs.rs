//! Loads whose inputs arrive as they are: the server parses, transforms and merges.
//!
//! ```text
//!   chunk -> file in the journal -> (pipe) a reader that waits for what has not arrived -> pipeline
//!                                   (seq)  the file, when all of it has arrived         -> pipeline
//! ```
//!
//! The inputs stand one after the other in one file: a load may have more of them than a process may open files. That
//! file is what survives a crash: the journal tells up to which byte each input is durable, and the client goes on from
//! there. The pipeline begins anew.
//!
//! Disk: the inputs. Of a `pipe` load that is larger than the server keeps (`ReceiveOptions::spool_bytes`), what
//! was read is given back while it runs; such a load begins anew after a crash.
//!
//! Source: seed 000, section 5.1 (Pipe and Seq).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use coload_input::Inputs;
use coload_link::{Message, Replies};
use coload_load::{Destination, FileCounts, Hooks, LoadReport, LoadRequest, OpenStream, Resources};
use coload_store::{LoadId, LoadJournal, OnConflict, Store};
use coload_threads::{Thread, lock, peak_memory_bytes, process_cpu_ns, spawn};
use coload_types::bytes::{ByteReader, put_varint};
use coload_types::{Error, Result};
use coload_wire::{
    Chunk, DONE, Done, Finish, InputShare, LoadDescription, REJECTS_PIECE, STORED, Welcome, Work,
};
use rustix::fs::{FallocateFlags, fallocate};

use crate::arrived::{Arrived, ArrivingReader, Reading};
use crate::duty::Duty;
use crate::options::ReceiveOptions;

/// Sixteenths of the memory of loads that the pipeline may take: the rest is for the messages in which the inputs come. A
/// record of a quarter of the memory must fit into a third of this, and what xz -9 needs into three tenths.
const MEMORY_SIXTEENTHS: usize = 14;
/// Bytes of an input after which they are made durable and told so.
const STORE_BYTES: u64 = 64 << 20;
/// Number in the journal of the file of all inputs, and of the part that tells how much of them is there.
const SPOOL: u32 = u32::MAX - 1;
/// Bytes of the file of rejects that are sent at once.
const REJECTS_PIECE_BYTES: usize = 1 << 20;

/// A load of whole inputs, with a client.
#[derive(Debug)]
pub struct WholeInputs {
    /// Id of the journal of the load.
    pub id: LoadId,
    /// What the load is, as its client described it.
    pub description: LoadDescription,
    /// `None` once it is published or dropped.
    pub journal: Mutex<Option<LoadJournal>>,
    arrived: Arc<Arrived>,
    spool: Spool,
    rejects: std::path::PathBuf,
    /// The rejects of the load once it is published, until the client is gone.
    rejected: Mutex<Option<File>>,
    cpu_started_ns: u64,
    /// Bytes written and not yet made durable, over all inputs.
    unstored: AtomicU64,
    /// Inputs are kept until the end: they are not larger than the server keeps, or read afterwards.
    keeps: bool,
    loading: Mutex<Option<Thread<Result<LoadReport>>>>,
    cancel: Arc<AtomicBool>,
}

/// The file of all inputs, and how much of each is durable in it.
fn open_spool(journal: &LoadJournal, totals: &[u64]) -> Result<(Spool, Vec<u64>)> {
    let path = journal.input_path(SPOOL);
    let file = journal.open_input(SPOOL)?;
    let mut left = file.metadata().map_err(|e| Error::io("look at", &path, &e))?.len();
    let mut stored = vec![0; totals.len()];
    if let Some((_, part)) = journal.parts()?.iter().find(|(number, _)| *number == SPOOL) {
        let mut reader = ByteReader::new(part);
        for (stored, total) in stored.iter_mut().zip(totals) {
            *stored = reader.varint()?.min(*total).min(left);
            left = left.saturating_sub(*total);
        }
    }
    Ok((Spool { file: Arc::new(file), path }, stored))
}

#[derive(Debug)]
struct Spool {
    file: Arc<File>,
    path: std::path::PathBuf,
}

/// Whether a load is done while its inputs arrive. Records may have to be read again that are left out for their keys.
fn reads_meanwhile(description: &LoadDescription) -> bool {
    description.work == Work::Pipe && description.on_conflict != OnConflict::Reject
}

impl WholeInputs {
    /// A load, with what its journal has of the inputs.
    ///
    /// # Errors
    /// `Unavailable` when its files cannot be opened.
    pub fn new(
        description: LoadDescription,
        journal: LoadJournal,
        spool_bytes: u64,
    ) -> Result<Self> {
        let totals: Vec<u64> =
            (0..description.inputs.len()).filter_map(|n| description.inputs.bytes(n)).collect();
        let (spool, stored) = open_spool(&journal, &totals)?;
        let reading = match reads_meanwhile(&description) {
            true => Reading::Meanwhile,
            false => Reading::Afterwards,
        };
        let all = totals.iter().fold(0u64, |sum, total| sum.saturating_add(*total));
        let keeps = reading == Reading::Afterwards || all <= spool_bytes;
        Ok(WholeInputs {
            id: journal.id(),
            description,
            rejects: journal.input_path(u32::MAX),
            journal: Mutex::new(Some(journal)),
            arrived: Arc::new(Arrived::new(&totals, stored, reading)),
            keeps,
            spool,
            rejected: Mutex::default(),
            cpu_started_ns: process_cpu_ns(),
            unstored: AtomicU64::new(0),
            loading: Mutex::default(),
            cancel: Arc::default(),
        })
    }

    /// What the client is told: how far the inputs are there.
    pub fn welcome(&self) -> Welcome {
        let stored = self.arrived.to();
        Welcome {
            id: self.id,
            attempt: 1,
            parts: Vec::new(),
            stored,
            // The rows are made here.
            began_us: None,
            columns: None,
            reread_partitions: 0,
        }
    }

    /// Begins to load while the inputs arrive, if it is that kind of load. An error is told at once.
    ///
    /// # Errors
    /// `Unavailable` when a thread cannot be started.
    pub fn begin(
        self: &Arc<Self>,
        store: &Store,
        options: &ReceiveOptions,
        replies: &Replies,
    ) -> Result<()> {
        if !reads_meanwhile(&self.description) {
            return Ok(());
        }
        let (arrived, file) = (Arc::clone(&self.arrived), Arc::clone(&self.spool.file));
        let open: OpenStream = Arc::new(move |number| {
            Box::new(ArrivingReader::new(Arc::clone(&arrived), number, Arc::clone(&file)))
        });
        self.start(store, options, Some(open), Some(replies.clone()))
    }

    fn start(
        self: &Arc<Self>,
        store: &Store,
        options: &ReceiveOptions,
        streams: Option<OpenStream>,
        replies: Option<Replies>,
    ) -> Result<()> {
        let duty = Duty::new(options);
        let (request, resources) = (self.request(streams), self.resources(options));
        let (of_threads, arrived) = (duty.clone(), Arc::clone(&self.arrived));
        let hooks = Hooks {
            progress: None,
            opened: None,
            written: None,
            after_task: Some(Arc::new(move |spent_ns| of_threads.rest(spent_ns))),
            confirm: Some(Arc::new(move || arrived.confirm())),
            cancel: Arc::clone(&self.cancel),
        };
        let into: Box<dyn Destination + Send> = match &options.cluster {
            None => Box::new(store.clone()),
            Some(member) => {
                let mut leaves = member.leaves_of(&request.table)?;
                leaves.node.again = self.description.again;
                Box::new(leaves)
            }
        };
        let whole = Arc::clone(self);
        let work = move || {
            // The pipeline's threads inherit it.
            duty.begin();
            let loaded = coload_load::load(&request, &resources, &hooks, &*into);
            if let Err(error) = &loaded {
                whole.forget_if_final(error);
            }
            if let (Err(error), Some(replies)) = (&loaded, &replies)
                && !whole.arrived.is_ended()
            {
                replies.fail(error);
            }
            loaded
        };
        let builder = std::thread::Builder::new().name("coload-whole".to_owned());
        let thread = spawn(builder, work)
            .map_err(|e| Error::Unavailable(format!("cannot start a thread: {e}")))?;
        *lock(&self.loading) = Some(thread);
        Ok(())
    }

    /// What is loaded of the inputs.
    fn request(&self, streams: Option<OpenStream>) -> LoadRequest {
        let of = &self.description;
        let piped = streams.is_some();
        let (names, path) = (Arc::clone(of.inputs.names()), self.spool.path.clone());
        let inputs = match piped {
            true => Inputs::streams(names, path),
            false => Inputs::parts(names, path, self.arrived.ends()),
        };
        let mut load =
            LoadRequest::new(inputs, of.table.clone(), of.schema.clone(), of.dialect.clone());
        load.derivation = of.rows.derivation.clone();
        load.fields = of.rows.fields.clone();
        load.fields_by_input = of.rows.by_input.clone();
        load.began_us = of.began_us.unwrap_or(load.began_us);
        load.streams = streams;
        load.key = Some(self.id);
        load.mode = of.mode;
        load.on_conflict = of.on_conflict;
        load.delete_where = of.delete_where.clone();
        load.max_rejects = of.max_rejects;
        load.rejects_file = Some(self.rejects.clone());
        load
    }

    /// What the server gives, and what the client says of chunks and dictionaries.
    fn resources(&self, options: &ReceiveOptions) -> Resources {
        let LoadDescription { chunk_bytes, fragments_per_partition, dictionaries, .. } =
            self.description;
        Resources {
            threads: options.load_threads(),
            memory: options.load_memory / 16 * MEMORY_SIXTEENTHS,
            chunk_bytes,
            fragments_per_partition,
            merge_columns: options.merge_columns,
            dictionaries,
            ..Resources::default()
        }
    }

    /// Takes bytes of an input; tells what is durable from time to time.
    ///
    /// # Errors
    /// `Corrupt` when they are of no input, `Unavailable` when the disk fails.
    pub fn take_chunk(&self, bytes: &[u8], replies: &Replies) -> Result<()> {
        self.take(Chunk::decode(bytes)?, replies)
    }

    /// Takes several.
    ///
    /// # Errors
    /// As [`Self::take_chunk`].
    pub fn take_chunks(&self, bytes: &[u8], replies: &Replies) -> Result<()> {
        let mut reader = ByteReader::new(bytes);
        while reader.remaining() > 0 {
            self.take(Chunk::read(&mut reader)?, replies)?;
        }
        Ok(())
    }

    fn take(&self, chunk: Chunk<'_>, replies: &Replies) -> Result<()> {
        let number = chunk.file as usize;
        let end = chunk.offset.checked_add(chunk.bytes.len() as u64);
        let total = self.description.inputs.bytes(number);
        let (Some(end), Some(total)) = (end, total) else {
            return Err(Error::Corrupt(format!("bytes of input {number}")));
        };
        if end > total {
            return Err(Error::Corrupt(format!(
                "input {number} has {total} bytes, and {end} came"
            )));
        }
        self.arrived.make_room(number, chunk.offset)?;
        let place = self.arrived.start(number).saturating_add(chunk.offset);
        let written = self.spool.file.write_all_at(chunk.bytes, place);
        written.map_err(|e| Error::io("write", &self.spool.path, &e))?;
        self.arrived.add(number, chunk.offset, end)?;
        let unstored = self.unstored.fetch_add(chunk.bytes.len() as u64, Ordering::AcqRel);
        if unstored + chunk.bytes.len() as u64 >= STORE_BYTES {
            self.unstored.store(0, Ordering::Release);
            match self.keeps {
                true => self.store_inputs(replies)?,
                false => self.give_back(),
            }
        }
        Ok(())
    }

    /// Makes durable what has arrived of all inputs.
    fn store_inputs(&self, replies: &Replies) -> Result<()> {
        let to = self.arrived.to();
        self.spool.file.sync_data().map_err(|e| Error::io("sync", &self.spool.path, &e))?;
        let mut told = Vec::with_capacity(to.len());
        to.iter().for_each(|to| put_varint(&mut told, *to));
        if let Some(journal) = &*lock(&self.journal) {
            journal.put_part(SPOOL, told.clone())?;
        }
        replies.send(&Message::new(STORED, told))
    }

    /// Gives the disk back what was read of the inputs. Best effort: not all file systems can.
    fn give_back(&self) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let read = self.arrived.read_to();
        if read > 0 {
            let _ = fallocate(&self.spool.file, flags, 0, read);
        }
    }

    /// The client has sent all: loads what is not loading yet, and waits for the end.
    ///
    /// # Errors
    /// Those of a load; `Corrupt` when bytes are missing.
    pub fn finish(
        self: &Arc<Self>,
        _finish: &Finish,
        store: &Store,
        options: &ReceiveOptions,
    ) -> Result<Message> {
        // Chunks of other connections may still be under way.
        for number in 0..self.description.inputs.len() {
            let total = self.arrived.total(number);
            let mut to = 0;
            while to < total {
                to = self.arrived.wait(number, to).map_err(|e| {
                    Error::Unavailable(format!("input {number} did not arrive: {e}"))
                })?;
            }
        }
        self.arrived.set_finished(true);
        if lock(&self.loading).is_none() {
            self.start(store, options, None, None)?;
        }
        let thread = lock(&self.loading).take();
        let Some(thread) = thread else {
            return Err(Error::Corrupt("a load is finished twice".into()));
        };
        let report = thread.join().unwrap_or_else(|_| {
            Err(Error::Unavailable("a thread of the server failed; its log has more".into()))
        });
        if report.is_err() {
            // What has arrived stays for the next attempt.
            self.arrived.set_finished(false);
        }
        let report = report?;
        let rejects_bytes = match &report.earlier {
            None => self.rejects_bytes()?,
            Some(_) => 0,
        };
        if let Some(journal) = lock(&self.journal).take() {
            // Published, whatever becomes of the rest.
            let _ = journal.remove();
        }
        Ok(Message::new(DONE, self.done(&report, rejects_bytes)?.encode()))
    }

    /// Removes the journal when the same inputs would fail again.
    fn forget_if_final(&self, error: &Error) {
        let is_final = matches!(error, Error::Input { .. } | Error::Invalid(_) | Error::Limit(_));
        if is_final && let Some(journal) = lock(&self.journal).take() {
            // What stays expires.
            let _ = journal.remove();
        }
    }

    /// Bytes of the file of rejects, which the client may fetch now.
    fn rejects_bytes(&self) -> Result<u64> {
        let fail = |e| Error::io("read", &self.rejects, &e);
        let file = File::open(&self.rejects).map_err(fail)?;
        let bytes = file.metadata().map_err(fail)?.len();
        *lock(&self.rejected) = Some(file);
        Ok(bytes)
    }

    /// Some bytes of the file of rejects.
    ///
    /// # Errors
    /// `Corrupt` when the load is not published, or was published by another.
    pub fn rejects_piece(&self, from: u64) -> Result<Message> {
        let rejected = lock(&self.rejected);
        let Some(file) = &*rejected else {
            return Err(Error::Corrupt("rejects of a load that is not published".into()));
        };
        let mut piece = vec![0; REJECTS_PIECE_BYTES];
        let read = file.read_at(&mut piece, from);
        piece.truncate(read.map_err(|e| Error::io("read", &self.rejects, &e))?);
        Ok(Message::new(REJECTS_PIECE, piece))
    }

    fn done(&self, report: &LoadReport, rejects_bytes: u64) -> Result<Done> {
        if let (Some(id), Some(earlier)) = (report.id, &report.earlier) {
            return Ok(Done {
                id: id.as_u128(),
                already: true,
                rows: earlier.rows,
                rejects: earlier.rejects,
                note: earlier.held.clone(),
                ..Done::default()
            });
        }
        // Who is told of fewer inputs knows that nothing was mended in the others, which are mostly all.
        let mended = report.files.mended_in_order();
        let part = |(number, file): (usize, &FileCounts)| InputShare {
            file: number as u32,
            rows: file.rows,
            rejects: file.rejects,
            filtered: file.filtered,
            lines: 0,
            end: file.text_bytes,
        };
        let (Some(id), Some(shown)) = (report.id, &report.published) else {
            return Err(Error::Corrupt(format!("load {} of a store shows no version", self.id)));
        };
        Ok(Done {
            id: id.as_u128(),
            already: false,
            version: shown.version,
            rows: report.rows(),
            rejects: report.reject_count(),
            bytes_stored: report.bytes_stored,
            segments: shown.segments,
            cpu_ns: process_cpu_ns() - self.cpu_started_ns,
            peak_memory: peak_memory_bytes(),
            files: report.files.counts().iter().enumerate().map(part).collect(),
            first_rejects: report.rejects.clone(),
            note: String::new(),
            rejects_bytes,
            mended,
            shares: None,
            keys: report.keys.filter(|_| self.description.on_conflict != OnConflict::Error),
        })
    }

    /// Whether the client has sent all.
    pub fn is_finished(&self) -> bool {
        self.arrived.is_finished()
    }

    /// The client is gone: what loads ends, and the inputs stay for the next attempt.
    pub fn leave(&self) {
        self.arrived.end();
        self.cancel.store(true, Ordering::Relaxed);
    }
}
