//! The inputs of a load: files, globs, objects and standard input.

mod list;
mod listing;
mod texts;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coload_places::{ObjectRef, PlaceOptions, find_objects, is_address};
use coload_types::{Error, Result};

use crate::archive::{
    ARCHIVE_HEAD_BYTES, ArchiveAt, Member, SEPARATOR, SheetArea, SheetChoice, Stored, find_members,
    is_named_as_archive, only_member, split_address, split_argument,
};
use crate::compression::Compression;
use crate::disk::{FileIdentity, check_path};
use crate::open::HEAD_BYTES;
use crate::raw::RawFile;
use list::InputList;

pub use list::Inputs;
pub use listing::{Keep, Met, expand_inputs_where};
use listing::{Order, Wanted, glob_files};

/// The argument that means standard input.
pub const STDIN: &str = "-";

/// One input, as it was when the load was planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    /// As the user named it, or as a glob found it; `-` is standard input.
    pub name: String,
    /// Where it is read from.
    pub source: InputSource,
}

/// Where an input is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputSource {
    /// Standard input, read once, of unknown size.
    Stdin,
    /// A file of known size, any part of which can be read.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Which file it was then.
        identity: FileIdentity,
    },
    /// A part of a file, any part of which can be read.
    Part {
        /// Path of the file that has the part.
        path: PathBuf,
        /// First byte of the part, counted from 0.
        start: u64,
        /// Length of the part, bytes.
        bytes: u64,
    },
    /// A member of an archive.
    Member {
        /// The archive.
        archive: ArchiveAt,
        /// Where the member lies in it.
        member: Member,
    },
    /// An object of a store, or of a server of HTTP, any part of which can be read.
    Object(ObjectRef),
    /// A pipe or another thing that is read once, of unknown size.
    Stream {
        /// Path of the pipe or device.
        path: PathBuf,
    },
    /// Rows that are no bytes: those of a table of a database, or of a query.
    Rows {
        /// Name of a table that is made of them.
        table: String,
        /// Whether they can be read again, and are the same then.
        again: bool,
    },
}

impl InputSource {
    /// Whether it can be read once only.
    pub fn is_read_once(&self) -> bool {
        matches!(
            self,
            InputSource::Stdin
                | InputSource::Stream { .. }
                | InputSource::Rows { again: false, .. }
        )
    }
}

impl InputFile {
    /// The size in bytes, if known.
    pub fn bytes(&self) -> Option<u64> {
        match self.source {
            InputSource::File { identity, .. } => Some(identity.bytes),
            InputSource::Part { bytes, .. } => Some(bytes),
            InputSource::Member { ref member, .. } => Some(member.bytes),
            InputSource::Object(ref object) => Some(object.bytes()),
            _ => None,
        }
    }

    /// Which file it is, if it is one that can be told by that.
    pub fn identity(&self) -> Option<&FileIdentity> {
        match &self.source {
            InputSource::File { identity, .. } => Some(identity),
            InputSource::Member { archive, .. } => archive.identity(),
            _ => None,
        }
    }

    /// Checks that a file is still as it was when the load was planned.
    ///
    /// # Errors
    /// `Unavailable` when it is another, or somebody wrote to it: a row may be missing or half new.
    pub fn check_unchanged(&self) -> Result<()> {
        match &self.source {
            InputSource::File { path, identity } => check_path(&self.name, path, identity),
            InputSource::Member { archive, .. } => archive.check_unchanged(&self.name),
            // All that was read of an object was of the version that was found.
            _ => Ok(()),
        }
    }

    /// The cells of a book that it is, if it is some.
    pub fn sheet(&self) -> Option<&SheetArea> {
        match &self.source {
            InputSource::Member { member: Member { stored: Stored::Sheet(area), .. }, .. } => {
                Some(area)
            }
            _ => None,
        }
    }

    /// Whether it is a sheet of a book.
    pub fn is_sheet(&self) -> bool {
        self.sheet().is_some()
    }

    /// Lines that its text does not have, which count in places: rows of a sheet above those that are read.
    pub fn lines_before(&self) -> u64 {
        self.sheet().map_or(0, |sheet| u64::from(sheet.area.rows.0 - 1))
    }

    /// The name to tell a record by that starts on a line, or a field of it, from 1: of a sheet with the cell, as in `book.xlsx!Sheet1!C17`.
    pub fn place_name(&self, line: u64, field: Option<u32>) -> String {
        let (Some(sheet), InputSource::Member { member, .. }) = (self.sheet(), &self.source) else {
            return self.name.clone();
        };
        let whole = match self.name.ends_with(&format!("{SEPARATOR}{}", member.name)) {
            true => self.name.as_str(),
            // A range follows.
            false => self.name.rsplit_once(SEPARATOR).map_or(self.name.as_str(), |(name, _)| name),
        };
        match (field, u32::try_from(line)) {
            (Some(field), Ok(row)) => {
                let cell = coload_sheets::cell_name(row, sheet.area.columns.0 + field - 1);
                format!("{whole}{SEPARATOR}{cell}")
            }
            _ => whole.to_owned(),
        }
    }

    /// The name of a table made of this input: the file's stem, with what no name may have replaced
    /// by underscores; `stdin` for standard input. `a.csv.gz` has the stem `a`.
    pub fn table_name(&self) -> String {
        let path = match &self.source {
            InputSource::Stdin => return "stdin".to_owned(),
            InputSource::Member { archive, .. } if self.is_sheet() => archive.path(),
            InputSource::Member { member, .. } => Path::new(&member.name),
            InputSource::Object(object) => Path::new(object.key()),
            InputSource::Rows { table, .. } => return table.clone(),
            InputSource::File { path, .. }
            | InputSource::Part { path, .. }
            | InputSource::Stream { path } => path,
        };
        let inner = path.extension().filter(|e| Compression::is_extension(e));
        let stem = match (inner, path.file_stem()) {
            (Some(_), Some(stem)) => Path::new(stem).file_stem(),
            (_, stem) => stem,
        };
        let stem = stem.map(|stem| stem.to_string_lossy()).unwrap_or_default();
        let mut name: String =
            stem.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
        if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            name.insert(0, 't');
        }
        name
    }
}

/// The inputs that arguments name, in their order; what a glob finds is sorted by name.
///
/// # Errors
/// `Invalid` for a missing file, a directory, a file that may not be read, a glob that finds
/// nothing, and an input that is named twice. `Unavailable` when a server does not answer.
pub fn expand_inputs(args: &[String]) -> Result<Inputs> {
    expand_inputs_with(args, &PlaceOptions::default(), &SheetChoice::default(), 0)
}

/// As [`expand_inputs`], with what a user says of the places of objects, and of the sheets of books. Small files are looked
/// at: the texts of the first are kept, of so many bytes together.
///
/// # Errors
/// As [`expand_inputs`].
pub fn expand_inputs_with(
    args: &[String],
    places: &PlaceOptions,
    sheets: &SheetChoice,
    text_room: usize,
) -> Result<Inputs> {
    if args.is_empty() {
        return Err(Error::Invalid(
            "no input: give a file, a glob such as 'data/*.csv', an address such as s3://bucket/key, or - for standard input"
                .to_owned(),
        ));
    }
    let objects = args.iter().filter(|arg| is_object(arg));
    let addresses: Vec<&str> = objects.map(|arg| object_of(arg).0).collect();
    let mut inputs = InputList::with_texts(text_room);
    let mut found = match addresses.is_empty() {
        true => None,
        false => {
            let (objects, ranges) = find_objects(&addresses, places)?;
            Some((objects, ranges.into_iter()))
        }
    };
    for arg in args {
        let here = found.as_mut().filter(|_| is_object(arg));
        match here.and_then(|(objects, ranges)| Some((objects, ranges.next()?))) {
            Some((objects, numbers)) => {
                for object in numbers.map(|number| objects.at(number)) {
                    let found = open_object(object, object_of(arg).1, sheets)?;
                    found.into_iter().for_each(|input| inputs.push(input));
                }
            }
            None => expand_one(arg, sheets, &mut inputs)?,
        }
    }
    let inputs = inputs.finish();
    sheets.check(&inputs)?;
    match find_twice(&inputs)? {
        None => Ok(inputs),
        Some((first, again)) => Err(Error::Invalid(format!(
            "{again} is named twice, as {first} and as {again}: its rows would be loaded twice"
        ))),
    }
}

/// Whether an argument is the address of an object: a file of that very name comes before it.
fn is_object(arg: &str) -> bool {
    is_address(arg) && fs::symlink_metadata(arg).is_err()
}

/// The first input that was named before, after the name it had then.
fn find_twice(inputs: &Inputs) -> Result<Option<(String, String)>> {
    if inputs.len() < 2 {
        return Ok(None);
    }
    let mut found = find_file_twice(inputs)?;
    let mut others = HashMap::new();
    for number in (0..inputs.len()).filter(|number| !inputs.is_file(*number)) {
        let key = match inputs.at(number).source {
            InputSource::Stdin => PathBuf::from(STDIN),
            InputSource::Member { archive, member, .. } => {
                // No name of a file has a NUL.
                let mut key = match &archive {
                    ArchiveAt::File { path, .. } => canonical(path)?.into_os_string(),
                    ArchiveAt::Object(object) => format!("\0{}", object.address()).into(),
                };
                key.push(format!("\0{}", member.name));
                PathBuf::from(key)
            }
            // No path begins so.
            InputSource::Object(object) => PathBuf::from(format!("\0{}", object.address())),
            InputSource::Rows { .. } => PathBuf::from(format!("\0{}", inputs.name(number))),
            InputSource::Stream { path }
            | InputSource::Part { path, .. }
            | InputSource::File { path, .. } => canonical(&path)?,
        };
        if let Some(first) = others.insert(key, number) {
            found = found.into_iter().chain([(number, first)]).min();
            break;
        }
    }
    Ok(found.map(|(again, first)| (inputs.name(first), inputs.name(again))))
}

/// The first file that was named before, and as which input.
///
/// To know a file by its path costs a look at each folder above it, so that is done only for those that have the
/// same number on the same device: one file, or hard links of it, which may be meant. They are found by sorting the
/// numbers of inputs: a table of a million files that are looked up takes 80 MB.
fn find_file_twice(inputs: &Inputs) -> Result<Option<(usize, usize)>> {
    let key = |number: &u32| {
        inputs.identity(*number as usize).map(|identity| (identity.device, identity.inode))
    };
    let mut files: Vec<u32> =
        (0..inputs.len() as u32).filter(|number| inputs.is_file(*number as usize)).collect();
    files.sort_unstable_by_key(|number| (key(number), *number));
    let mut found: Option<(usize, usize)> = None;
    for links in files.chunk_by(|a, b| key(a) == key(b)).filter(|links| links.len() > 1) {
        let mut paths = HashMap::new();
        for number in links.iter().map(|number| *number as usize) {
            let InputSource::File { path, .. } = inputs.at(number).source else { continue };
            if let Some(first) = paths.insert(canonical(&path)?, number) {
                let pair = (number, first);
                found = Some(found.map_or(pair, |found| found.min(pair)));
                break;
            }
        }
    }
    Ok(found)
}

fn canonical(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).map_err(|error| Error::io("open", path, &error))
}

/// The inputs of one argument. A file of that very name comes before a glob.
fn expand_one(arg: &str, sheets: &SheetChoice, inputs: &mut InputList) -> Result<()> {
    if arg == STDIN {
        inputs.push(InputFile { name: STDIN.to_owned(), source: InputSource::Stdin });
        return Ok(());
    }
    let is_glob = arg.contains(['*', '?', '[']);
    if fs::symlink_metadata(arg).is_ok() {
        inputs.push(open_file(arg.to_owned(), Path::new(arg), sheets)?);
        return Ok(());
    }
    if let Some((archive, member)) = split_argument(arg) {
        let shown = archive.to_string_lossy();
        let file = Arc::new(RawFile::open(&shown, &archive)?);
        let Some(identity) = file.identity().copied() else {
            return Err(Error::Invalid(format!("{shown} is no file that has members")));
        };
        let archive = ArchiveAt::File { path: archive.clone(), identity };
        let found = find_members(&file, &archive, member, sheets)?;
        found.into_iter().for_each(|member| inputs.push(member));
        return Ok(());
    }
    if !is_glob {
        inputs.push(open_file(arg.to_owned(), Path::new(arg), sheets)?);
        return Ok(());
    }
    glob_files(arg, Order::Sorted, sheets, Wanted::All, &mut |Found { input, head }| {
        let text = if input.bytes() == Some(head.len() as u64) { &head[..] } else { &[] };
        inputs.push_read(input, text);
    })
}

/// Opens the file, so that one that may not be read is told before the load, not in its middle.
fn open_file(name: String, path: &Path, sheets: &SheetChoice) -> Result<InputFile> {
    let metadata = fs::metadata(path).map_err(|error| Error::io("open", path, &error))?;
    Ok(open_found(name, path, &metadata, sheets)?.input)
}

/// An input that was found and opened.
struct Found {
    input: InputFile,
    /// Its first bytes, if it is a file.
    head: Vec<u8>,
}

/// The input that a path is, of which the system told this.
fn open_found(
    name: String,
    path: &Path,
    metadata: &fs::Metadata,
    sheets: &SheetChoice,
) -> Result<Found> {
    if metadata.is_dir() {
        return Err(Error::Invalid(format!(
            "{name} is a directory: name its files, as in '{}/*.csv'",
            name.trim_end_matches('/')
        )));
    }
    if !metadata.is_file() {
        let input = InputFile { name, source: InputSource::Stream { path: path.to_owned() } };
        return Ok(Found { input, head: Vec::new() });
    }
    open_regular(name, path, sheets)
}

/// The input that a regular file is.
fn open_regular(name: String, path: &Path, sheets: &SheetChoice) -> Result<Found> {
    let file = Arc::new(RawFile::open(&name, path)?);
    let Some(identity) = file.identity().copied() else {
        let input = InputFile { name, source: InputSource::Stream { path: path.to_owned() } };
        return Ok(Found { input, head: Vec::new() });
    };
    let head = file.head(HEAD_BYTES)?;
    let archive = ArchiveAt::File { path: path.to_owned(), identity };
    if let Some(member) = only_member((&file, &head), &archive, sheets)? {
        return Ok(Found { input: member, head: Vec::new() });
    }
    let source = InputSource::File { path: path.to_owned(), identity };
    Ok(Found { input: InputFile { name, source }, head })
}

/// The address of the object that an argument names, and the member that it names of it.
fn object_of(arg: &str) -> (&str, Option<&str>) {
    match split_address(arg) {
        Some((archive, member)) => (archive, Some(member)),
        None => (arg, None),
    }
}

/// The inputs that an object is: itself, or members of it if it is named as an archive.
fn open_object(
    object: ObjectRef,
    member: Option<&str>,
    sheets: &SheetChoice,
) -> Result<Vec<InputFile>> {
    let name = object.address().to_owned();
    if member.is_none() && !is_named_as_archive(object.key()) {
        return Ok(vec![InputFile { name, source: InputSource::Object(object) }]);
    }
    let file = Arc::new(RawFile::of_object(&name, &object));
    let archive = ArchiveAt::Object(object.clone());
    match member {
        Some(member) => find_members(&file, &archive, member, sheets),
        None => {
            let head = file.head(ARCHIVE_HEAD_BYTES)?;
            let found = only_member((&file, &head), &archive, sheets)?;
            Ok(vec![found.unwrap_or(InputFile { name, source: InputSource::Object(object) })])
        }
    }
}

#[cfg(test)]
mod tests;
