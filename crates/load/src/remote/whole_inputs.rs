//! Loads whose inputs are sent as they are: the server does everything.
//!
//! Source: seed 000, section 5.1 (Pipe and Seq).

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use coload_input::{InputFile, InputSource, RawFile};
use coload_link::{Client, Message};
use coload_source::Mended;
use coload_types::bytes::put_varint;
use coload_types::{Error, Result};
use coload_wire::{
    CHUNK, CHUNKS, Chunk, DONE, Done, FINISH, Finish, REJECTS, REJECTS_PIECE, Welcome,
};

use super::session::{WORK_TIMEOUT, stopped, wait_for};
use crate::file_report::{FileCounts, FileReports};
use crate::hooks::Hooks;
use crate::load::Load;
use crate::output_file::{OutputFile, check_output};
use crate::report::{LoadReport, published_without_rejects};

/// Bytes of an input sent at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes of each input that are sent before the rest of any: they tell how it is compressed.
const HEAD_BYTES: u64 = 4096;
/// Such bytes that are sent at once.
const HEADS_BYTES: usize = 256 << 10;

/// Sends what the server does not have of the inputs, and waits until they are loaded.
///
/// # Errors
/// `Invalid` when an input is no file, else as those of a load.
pub fn send_whole(
    load: Load<'_>,
    client: &Client,
    welcome: &Welcome,
    started_us: i64,
) -> Result<Done> {
    let Load { request, hooks, .. } = load;
    if let Some(path) = &request.rejects_file {
        check_output("--rejects", path, &request.inputs, &request.protected)?;
        // Only then is the load published. What opens a pipe is who writes to it.
        if !std::fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
            drop(OutputFile::create(path)?);
        }
    }
    let inputs = &request.inputs;
    // Each is open while it is sent: there may be a million. Nothing is sent if one is no file.
    (0..inputs.len())
        .filter(|number| inputs.identity(*number).is_none())
        .try_for_each(|number| open(&inputs.at(number)).map(drop))?;
    let bytes = |number| inputs.bytes(number).unwrap_or(0);
    let stored = |i: usize| welcome.stored.get(i).copied().unwrap_or(0);
    let mut sending = Sending { hooks, client, buffer: vec![0; CHUNK_BYTES], heads: Vec::new() };
    let head = if inputs.len() > 1 { HEAD_BYTES } else { 0 };
    if head > 0 {
        for (i, input) in inputs.iter().enumerate() {
            sending.send_head(i, &open(&input)?, stored(i))?;
        }
        sending.flush_heads()?;
    }
    for i in 0..inputs.len() {
        let from = stored(i).max(head);
        if from < bytes(i) {
            sending.send(i, &open(&inputs.at(i))?, from, bytes(i))?;
        }
    }
    inputs.iter().try_for_each(|input| input.check_unchanged())?;
    let bytes = (0..inputs.len()).map(bytes).sum();
    let finish = Finish { partitions: 0, records: 0, rows: 0, bytes, started_us };
    client.push(Message::new(FINISH, finish.encode()))?;
    let done = wait_for(client, &[DONE], WORK_TIMEOUT, &hooks.cancel)?;
    Done::decode(&done.bytes)
}

/// Opens an input, which must be what it was when the load was planned.
fn open(input: &InputFile) -> Result<RawFile> {
    match &input.source {
        InputSource::File { path, identity } => RawFile::open_as(&input.name, path, identity),
        _ => Err(Error::Invalid(format!(
            "{}: --placement pipe and seq send files as they are, and this is none (try --placement none)",
            input.name
        ))),
    }
}

struct Sending<'a> {
    hooks: &'a Hooks,
    client: &'a Client,
    buffer: Vec<u8>,
    /// First bytes of inputs that are sent together.
    heads: Vec<u8>,
}

impl Sending<'_> {
    /// Sends the first bytes of an input with those of others: a million inputs of one line are few messages.
    fn send_head(&mut self, number: usize, file: &RawFile, from: u64) -> Result<()> {
        let to = HEAD_BYTES.min(file.bytes());
        if from >= to {
            return Ok(());
        }
        let head = &mut self.buffer[..(to - from) as usize];
        let read = file.read_at(head, from)?;
        Chunk { file: number as u32, offset: from, bytes: &head[..read] }.put(&mut self.heads);
        if self.heads.len() < HEADS_BYTES { Ok(()) } else { self.flush_heads() }
    }

    fn flush_heads(&mut self) -> Result<()> {
        if self.hooks.is_cancelled() {
            return Err(stopped());
        }
        match std::mem::take(&mut self.heads) {
            heads if heads.is_empty() => Ok(()),
            heads => self.client.push(Message::new(CHUNKS, heads)),
        }
    }

    /// Sends a part of an input.
    fn send(&mut self, number: usize, file: &RawFile, mut from: u64, to: u64) -> Result<()> {
        while from < to {
            if self.hooks.is_cancelled() {
                return Err(stopped());
            }
            let length = self.buffer.len().min((to - from) as usize);
            let read = file.read_at(&mut self.buffer[..length], from)?;
            let chunk = Chunk { file: number as u32, offset: from, bytes: &self.buffer[..read] };
            self.client.push(Message::new(CHUNK, chunk.encode()))?;
            from += read as u64;
        }
        Ok(())
    }
}

/// Writes the file of rejects, which the server gives piece by piece.
fn fetch_rejects(hooks: &Hooks, client: &Client, path: &Path, done: &Done) -> Result<()> {
    let (output, mut file) = OutputFile::create(path)?;
    let fail = |e| Error::io("write rejects to", path, &e);
    let mut at = 0;
    while at < done.rejects_bytes {
        let mut wanted = Vec::new();
        put_varint(&mut wanted, at);
        client.push(Message::new(REJECTS, wanted))?;
        let piece = wait_for(client, &[REJECTS_PIECE], WORK_TIMEOUT, &hooks.cancel)?.bytes;
        if piece.is_empty() {
            return Err(Error::Corrupt(format!(
                "the server ended the rejects at byte {at} of {}",
                done.rejects_bytes
            )));
        }
        file.write_all(&piece).map_err(fail)?;
        at += piece.len() as u64;
    }
    output.commit()
}

/// What the server says of the inputs, in the client's report; writes the file of rejects.
///
/// # Errors
/// `Invalid` when the file of rejects cannot be written.
pub fn report(load: Load<'_>, client: &Client, base: LoadReport, done: Done) -> Result<LoadReport> {
    let Load { request, hooks, .. } = load;
    if let Some(path) = &request.rejects_file {
        let fetched = fetch_rejects(hooks, client, path, &done);
        fetched.map_err(|error| published_without_rejects(done.version, &error))?;
    }
    let inputs = request.inputs.clone();
    let mut counts = vec![FileCounts::default(); inputs.len()];
    let mut mended = BTreeMap::new();
    let mut told = done.mended.into_iter();
    for part in done.files {
        let number = part.file as usize;
        let Some(counts) = counts.get_mut(number) else {
            return Err(Error::Corrupt(format!("the server tells of input {number}")));
        };
        *counts = FileCounts {
            bytes: inputs.bytes(number).unwrap_or(part.end),
            text_bytes: part.end,
            rows: part.rows,
            rejects: part.rejects,
            filtered: part.filtered,
        };
        mended.extend(told.next().filter(|m| *m != Mended::default()).map(|m| (number, m)));
    }
    let files = FileReports::new(inputs, counts, mended);
    Ok(LoadReport { files, rejects: done.first_rejects, ..base })
}
