//! What a load is, so that the server knows it again.

use std::fs::File;
use std::os::unix::{ffi::OsStrExt, fs::FileExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use coload_input::{ArchiveAt, InputFile, InputSource, ObjectRef};
use coload_types::bytes::{Checksum, checksum, put_bytes};
use coload_types::{Error, Result};
use coload_wire::{Again, ColumnsAre, InputPrint, LoadDescription, PrintList, RowSource, Work};

use super::{RemoteOptions, RemoteWork};
use crate::grain::Grain;
use crate::request::LoadRequest;
use crate::resources::Resources;

/// Bytes at either end of an input that its fingerprint covers.
const END_BYTES: u64 = 64 << 10;

/// Describes a load into a server.
///
/// # Errors
/// As [`describe_as`].
pub fn describe(
    request: &LoadRequest,
    resources: &Resources,
    remote: &RemoteOptions,
) -> Result<LoadDescription> {
    let work = match remote.work {
        RemoteWork::Pipe => Work::Pipe,
        RemoteWork::Seq => Work::Seq,
        RemoteWork::Shared(_) => Work::Partitions,
    };
    Ok(LoadDescription { again: remote.again, ..describe_as(request, resources, work)? })
}

/// Describes a load that does this work.
///
/// # Errors
/// `Invalid` when an input cannot be opened, `Unavailable` when it cannot be read.
pub fn describe_as(
    request: &LoadRequest,
    resources: &Resources,
    work: Work,
) -> Result<LoadDescription> {
    let mut places = Checksum::default();
    places.add(&machine());
    let (mut salt, grain) = (0, Grain::of(request, resources));
    let mut inputs = PrintList::default();
    for input in request.inputs.iter() {
        match &input.source {
            // Of a member of an archive the name says which it is.
            InputSource::File { path, .. }
            | InputSource::Member { archive: ArchiveAt::File { path, .. }, .. } => {
                inputs.push(&print_file(&input, path)?);
                let mut place = Vec::new();
                put_bytes(&mut place, folder_of(path).as_os_str().as_bytes());
                places.add(&place);
            }
            InputSource::Object(object)
            | InputSource::Member { archive: ArchiveAt::Object(object), .. } => {
                inputs.push(&print_object(&input.name, object));
            }
            // Read once: never the same again.
            _ => {
                salt = coload_store::LoadId::random()?.as_u128() | 1;
                let name = input.name.clone();
                inputs.push(&InputPrint { name, bytes: 0, modified_us: 0, ends: 0 });
            }
        }
    }
    Ok(LoadDescription {
        table: request.table.clone(),
        mode: request.mode,
        on_conflict: request.on_conflict,
        delete_where: request.delete_where.clone(),
        schema: request.schema.clone(),
        rows: RowSource {
            program: request.program.as_ref().map(|program| program.sql().clone()),
            derivation: request.derivation.clone(),
            fields: request.fields.clone(),
            by_input: request.fields_by_input.clone(),
        },
        began_us: Some(request.began_us),
        origin: Some(places.value()),
        columns_are: match request.inferred {
            Some(_) => ColumnsAre::Inferred,
            None => ColumnsAre::Given,
        },
        inputs: inputs.finish(),
        dialect: request.dialect.clone(),
        chunk_bytes: grain.chunk_bytes,
        fragments_per_partition: grain.fragments_per_partition,
        dictionaries: resources.dictionaries,
        max_rejects: request.max_rejects,
        work,
        salt,
        again: Again::No,
        share: request.share.as_deref().cloned(),
    })
}

/// What tells this machine from others, as far as it says.
fn machine() -> Vec<u8> {
    let mut names = Vec::new();
    for path in ["/etc/machine-id", "/proc/sys/kernel/hostname"] {
        put_bytes(&mut names, &std::fs::read(path).unwrap_or_default());
    }
    names
}

/// The folder that a file lies in, however it was named.
fn folder_of(path: &Path) -> PathBuf {
    let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    file.parent().map_or_else(PathBuf::new, Path::to_owned)
}

/// Of an object the server tells which version it is: nothing is read.
fn print_object(name: &str, object: &ObjectRef) -> InputPrint {
    let (modified_us, bytes) = (object.modified_us(), object.bytes());
    let ends = checksum(object.etag().unwrap_or_default().as_bytes());
    InputPrint { name: name.to_owned(), bytes, modified_us, ends }
}

fn print_file(input: &InputFile, path: &Path) -> Result<InputPrint> {
    let file = File::open(path).map_err(|e| Error::io("open", path, &e))?;
    let meta = file.metadata().map_err(|e| Error::io("look at", path, &e))?;
    let bytes = meta.len();
    let mut ends = vec![0; bytes.min(END_BYTES) as usize];
    let fail = |e| Error::io("read", path, &e);
    file.read_exact_at(&mut ends, 0).map_err(fail)?;
    if bytes > END_BYTES {
        let head = ends.len();
        let tail = (bytes - END_BYTES).min(END_BYTES);
        ends.resize(head + tail as usize, 0);
        file.read_exact_at(&mut ends[head..], bytes - tail).map_err(fail)?;
    }
    let modified = meta.modified().map_err(|e| Error::io("look at", path, &e))?;
    let since = modified.duration_since(SystemTime::UNIX_EPOCH);
    let modified_us = since.map_or(0, |d| d.as_micros() as i64);
    Ok(InputPrint { name: input.name.clone(), bytes, modified_us, ends: checksum(&ends) })
}
