//! Loads whose inputs are sent as they are: the server does everything.
//!
//! Source: seed 000, section 5.1 (Pipe and Seq).

use std::sync::atomic::Ordering;

use coload_format::{Error, Result};
use coload_input::{InputSource, RawFile};
use coload_link::{Client, Message};

use super::report::RemoteReport;
use super::session::{WORK_TIMEOUT, stopped, wait_for};
use crate::options::LoadOptions;
use crate::report::FileReport;
use crate::wire::{CHUNK, Chunk, DONE, Done, FINISH, Finish, Welcome};

/// Bytes of an input sent at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes of each input that are sent before the rest of any: they tell how it is compressed.
const HEAD_BYTES: u64 = 4096;

/// Sends what the server does not have of the inputs, and waits until they are loaded.
///
/// # Errors
/// `Invalid` when an input is no file, else as those of a load.
pub fn send_whole(
    options: &LoadOptions,
    client: &Client,
    welcome: &Welcome,
    started_us: i64,
) -> Result<Done> {
    let files = options
        .inputs
        .iter()
        .map(|input| match &input.source {
            InputSource::File { path, .. } => RawFile::open(&input.name, path),
            _ => Err(Error::Invalid(format!(
                "{}: --placement pipe and seq send files as they are, and this is none (try --placement \
                 none)",
                input.name
            ))),
        })
        .collect::<Result<Vec<_>>>()?;
    let stored = |i: usize| welcome.stored.get(i).copied().unwrap_or(0);
    if files.len() > 1 {
        for (i, file) in files.iter().enumerate() {
            send_part(options, client, i, file, stored(i), HEAD_BYTES.min(file.bytes()))?;
        }
    }
    for (i, file) in files.iter().enumerate() {
        let head = if files.len() > 1 { HEAD_BYTES } else { 0 };
        send_part(options, client, i, file, stored(i).max(head), file.bytes())?;
    }
    files.iter().try_for_each(RawFile::check_unchanged)?;
    let bytes = files.iter().map(RawFile::bytes).sum();
    let finish = Finish { partitions: 0, records: 0, rows: 0, bytes, started_us };
    client.push(Message::new(FINISH, finish.encode()))?;
    let done = wait_for(client, &[DONE], WORK_TIMEOUT, &options.cancel)?;
    Done::decode(&done.bytes)
}

fn send_part(
    options: &LoadOptions,
    client: &Client,
    number: usize,
    file: &RawFile,
    mut from: u64,
    to: u64,
) -> Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES];
    while from < to {
        if options.cancel.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        let length = buffer.len().min((to - from) as usize);
        let read = file.read_at(&mut buffer[..length], from)?;
        let chunk = Chunk { file: number as u32, offset: from, bytes: &buffer[..read] };
        client.push(Message::new(CHUNK, chunk.encode()))?;
        from += read as u64;
    }
    Ok(())
}

/// What the server says of the inputs, in the client's report; writes the file of rejects.
///
/// # Errors
/// `Invalid` when the file of rejects cannot be written.
pub fn report(options: &LoadOptions, base: RemoteReport, done: Done) -> Result<RemoteReport> {
    if let Some(path) = &options.rejects_file {
        std::fs::write(path, &done.rejects_csv)
            .map_err(|e| Error::io("write rejects to", path, &e))?;
    }
    let file = |part: &crate::wire::FilePart| {
        let input = options.inputs.get(part.file as usize);
        FileReport {
            name: input.map_or_else(String::new, |i| i.name.clone()),
            bytes: input.and_then(|i| i.bytes()).unwrap_or(part.end),
            text_bytes: part.end,
            records: part.rows + part.rejects + part.filtered,
            filtered: part.filtered,
            rows: part.rows,
            rejects: part.rejects,
            mended: coload_source::Mended::default(),
        }
    };
    let files = done.files.iter().map(file).collect();
    Ok(RemoteReport { files, first_rejects: done.first_rejects, ..base })
}
