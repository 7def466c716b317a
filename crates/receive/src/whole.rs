//! Loads whose inputs arrive as they are: the server parses, transforms and merges.
//!
//! ```text
//!   chunk -> file in the journal -> (pipe) a reader that waits for what has not arrived -> pipeline
//!                                   (seq)  the file, when all of it has arrived         -> pipeline
//! ```
//!
//! The files are what survives a crash: the journal tells up to which byte each is durable, and the client
//! goes on from there. The pipeline begins anew.
//!
//! Disk: the inputs. Of a `pipe` load that is larger than the server keeps (`ReceiveOptions::spool_bytes`), what
//! was read is given back while it runs; such a load begins anew after a crash.
//!
//! Source: seed 000, section 5.1 (Pipe and Seq).

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use coload_format::bytes::{ByteReader, put_varint};
use coload_format::{Error, Result};
use coload_input::{InputFile, InputSource};
use coload_link::{Message, Replies, WIRE_VERSION};
use coload_load::wire::{
    Chunk, DONE, Done, FilePart, Finish, LoadDescription, STORED, Welcome, Work,
};
use coload_load::{LoadOptions, LoadReport, OpenedStream, peak_memory_bytes, process_cpu_ns};
use coload_store::{LoadId, LoadJournal, Store};
use rustix::fs::{FallocateFlags, fallocate};

use crate::arrived::{Arrived, ArrivingReader, Reading};
use crate::duty::Duty;
use crate::lock;
use crate::options::ReceiveOptions;

/// Bytes of an input after which they are made durable and told so.
const STORE_BYTES: u64 = 64 << 20;
/// Largest file of rejects that is sent back.
const REJECTS_BYTES_MAX: u64 = 64 << 20;

/// A load of whole inputs, with a client.
#[derive(Debug)]
pub struct Whole {
    /// The load.
    pub id: LoadId,
    /// What it is.
    pub description: LoadDescription,
    /// `None` once it is published or dropped.
    pub journal: Mutex<Option<LoadJournal>>,
    arrived: Arc<Arrived>,
    spools: Vec<Spool>,
    rejects: std::path::PathBuf,
    cpu_started_ns: u64,
    /// Bytes written and not yet made durable, over all inputs.
    unstored: AtomicU64,
    /// Inputs are kept until the end: they are not larger than the server keeps, or read afterwards.
    keeps: bool,
    loading: Mutex<Option<std::thread::JoinHandle<Result<LoadReport>>>>,
    cancel: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Spool {
    file: File,
    path: std::path::PathBuf,
}

impl Whole {
    /// A load, with what its journal has of the inputs.
    ///
    /// # Errors
    /// `Unavailable` when its files cannot be opened.
    pub fn new(
        description: LoadDescription,
        journal: LoadJournal,
        spool_bytes: u64,
    ) -> Result<Self> {
        let mut stored = vec![0; description.inputs.len()];
        for (number, bytes) in journal.parts()? {
            if let Some(stored) = stored.get_mut(number as usize) {
                *stored = ByteReader::new(&bytes).varint()?;
            }
        }
        let mut spools = Vec::with_capacity(stored.len());
        for (number, stored) in stored.iter_mut().enumerate() {
            let path = journal.input_path(number as u32);
            let file = journal.open_input(number as u32)?;
            let bytes = file.metadata().map_err(|e| Error::io("look at", &path, &e))?.len();
            *stored = (*stored).min(bytes);
            spools.push(Spool { file, path });
        }
        let totals: Vec<u64> = description.inputs.iter().map(|i| i.bytes).collect();
        let reading = match description.work {
            Work::Pipe => Reading::Meanwhile,
            _ => Reading::Afterwards,
        };
        let all = totals.iter().fold(0u64, |sum, total| sum.saturating_add(*total));
        let keeps = reading == Reading::Afterwards || all <= spool_bytes;
        Ok(Whole {
            id: journal.id(),
            description,
            rejects: journal.input_path(u32::MAX),
            journal: Mutex::new(Some(journal)),
            arrived: Arc::new(Arrived::new(totals, stored, reading)),
            keeps,
            spools,
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
            wire_version: WIRE_VERSION,
            parts: Vec::new(),
            stored,
            // The rows are made here.
            began_us: None,
            columns: None,
            text_partitions: 0,
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
        if self.description.work != Work::Pipe {
            return Ok(());
        }
        let streams = self
            .description
            .inputs
            .iter()
            .zip(&self.spools)
            .enumerate()
            .map(|(number, (input, spool))| {
                let file =
                    spool.file.try_clone().map_err(|e| Error::io("open", &spool.path, &e))?;
                let arrived = Arc::clone(&self.arrived);
                let reader = ArrivingReader::new(arrived, number, file);
                Ok(OpenedStream::new(input.name.clone(), Box::new(reader)))
            })
            .collect::<Result<Vec<_>>>()?;
        self.start(store, options, streams, Some(replies.clone()))
    }

    fn start(
        self: &Arc<Self>,
        store: &Store,
        options: &ReceiveOptions,
        streams: Vec<OpenedStream>,
        replies: Option<Replies>,
    ) -> Result<()> {
        let duty = Duty::new(options);
        let mut load = self.load_options(options, streams)?;
        let of_threads = duty.clone();
        load.after_task = Some(Arc::new(move |spent_ns| of_threads.rest(spent_ns)));
        let (store, whole) = (store.clone(), Arc::clone(self));
        let work = move || {
            // The pipeline's threads inherit it.
            duty.begin();
            let loaded = coload_load::load(&store, &load);
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
        let thread = std::thread::Builder::new().name("coload-whole".to_owned()).spawn(work);
        let thread =
            thread.map_err(|e| Error::Unavailable(format!("cannot start a thread: {e}")))?;
        *lock(&self.loading) = Some(thread);
        Ok(())
    }

    fn load_options(
        &self,
        options: &ReceiveOptions,
        streams: Vec<OpenedStream>,
    ) -> Result<LoadOptions> {
        let of = &self.description;
        let piped = !streams.is_empty();
        let input = |(input, spool): (&coload_load::wire::InputPrint, &Spool)| {
            let path = spool.path.clone();
            let source = match piped {
                true => InputSource::Stream { path },
                false => InputSource::File { path, bytes: input.bytes, modified: None },
            };
            InputFile { name: input.name.clone(), source }
        };
        let inputs = of.inputs.iter().zip(&self.spools).map(input).collect();
        let mut load =
            LoadOptions::new(inputs, of.table.clone(), of.schema.clone(), of.dialect.clone());
        load.derivation = of.rows.derivation.clone();
        load.fields = of.rows.fields.clone();
        load.began_us = of.began_us.unwrap_or(load.began_us);
        load.streams = streams;
        load.key = Some(self.id);
        load.mode = of.mode;
        load.threads = options.load_threads();
        load.memory = options.load_memory;
        load.chunk_bytes = of.chunk_bytes;
        load.fragments_per_partition = of.fragments_per_partition;
        load.merge_columns = options.merge_columns;
        load.encoding = of.encoding;
        load.max_rejects = of.max_rejects;
        load.rejects_file = Some(self.rejects.clone());
        load.cancel = Arc::clone(&self.cancel);
        let arrived = Arc::clone(&self.arrived);
        load.confirm = Some(Arc::new(move || arrived.confirm()));
        Ok(load)
    }

    /// Takes bytes of an input; tells what is durable from time to time.
    ///
    /// # Errors
    /// `Corrupt` when they are of no input, `Unavailable` when the disk fails.
    pub fn take_chunk(&self, bytes: &[u8], replies: &Replies) -> Result<()> {
        let chunk = Chunk::decode(bytes)?;
        let number = chunk.file as usize;
        let end = chunk.offset.checked_add(chunk.bytes.len() as u64);
        let total = self.description.inputs.get(number).map(|i| i.bytes);
        let (Some(spool), Some(end), Some(total)) = (self.spools.get(number), end, total) else {
            return Err(Error::Corrupt(format!("bytes of input {number}")));
        };
        if end > total {
            return Err(Error::Corrupt(format!(
                "input {number} has {total} bytes, and {end} came"
            )));
        }
        self.arrived.make_room(number, chunk.offset)?;
        let written = spool.file.write_all_at(chunk.bytes, chunk.offset);
        written.map_err(|e| Error::io("write", &spool.path, &e))?;
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
        let mut told = Vec::new();
        for (number, (spool, to)) in self.spools.iter().zip(&to).enumerate() {
            spool.file.sync_data().map_err(|e| Error::io("sync", &spool.path, &e))?;
            let mut part = Vec::new();
            put_varint(&mut part, *to);
            told.extend_from_slice(&part);
            if let Some(journal) = &*lock(&self.journal) {
                journal.put_part(number as u32, part)?;
            }
        }
        replies.send(&Message::new(STORED, told))
    }

    /// Gives the disk back what was read of the inputs. Best effort: not all file systems can.
    fn give_back(&self) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        for (spool, read) in self.spools.iter().zip(self.arrived.read()).filter(|(_, r)| *r > 0) {
            let _ = fallocate(&spool.file, flags, 0, read);
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
        for number in 0..self.spools.len() {
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
            self.start(store, options, Vec::new(), None)?;
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
        let rejects_csv = self.rejects_csv()?;
        if let Some(journal) = lock(&self.journal).take() {
            // Published, whatever becomes of the rest.
            let _ = journal.remove();
        }
        Ok(Message::new(DONE, self.done(&report, rejects_csv).encode()))
    }

    /// Removes the journal when the same inputs would fail again.
    fn forget_if_final(&self, error: &Error) {
        let is_final = matches!(error, Error::Input { .. } | Error::Invalid(_) | Error::Limit(_));
        if is_final && let Some(journal) = lock(&self.journal).take() {
            // What stays expires.
            let _ = journal.remove();
        }
    }

    fn rejects_csv(&self) -> Result<Vec<u8>> {
        let mut csv = Vec::new();
        let open = File::open(&self.rejects).map_err(|e| Error::io("open", &self.rejects, &e))?;
        let read = open.take(REJECTS_BYTES_MAX).read_to_end(&mut csv);
        read.map_err(|e| Error::io("read", &self.rejects, &e))?;
        Ok(csv)
    }

    fn done(&self, report: &LoadReport, rejects_csv: Vec<u8>) -> Done {
        let part = |(number, file): (usize, &coload_load::FileReport)| FilePart {
            file: number as u32,
            rows: file.rows,
            rejects: file.rejects,
            filtered: file.filtered,
            lines: 0,
            end: file.text_bytes,
        };
        Done {
            id: report.id.as_u128(),
            already: false,
            version: report.version,
            rows: report.rows(),
            rejects: report.reject_count(),
            bytes_stored: report.bytes_stored,
            segments: report.segments as u64,
            cpu_ns: process_cpu_ns() - self.cpu_started_ns,
            peak_memory: peak_memory_bytes(),
            files: report.files.iter().enumerate().map(part).collect(),
            first_rejects: report.rejects.clone(),
            rejects_csv,
            note: String::new(),
        }
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
