//! The inputs of a load: files, globs and standard input.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use coload_format::{Error, Result};

use crate::archive::{Member, find_members, only_member, split_argument};
use crate::compression::Compression;

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
        /// Its path.
        path: PathBuf,
        /// Its size in bytes.
        bytes: u64,
        /// When it was last written.
        modified: Option<SystemTime>,
    },
    /// A member of an archive.
    Member {
        /// The archive.
        archive: PathBuf,
        /// Where the member lies in it.
        member: Member,
    },
    /// A pipe or another thing that is read once, of unknown size.
    Stream {
        /// Its path.
        path: PathBuf,
    },
}

impl InputSource {
    /// Whether it can be read once only.
    pub fn is_read_once(&self) -> bool {
        matches!(self, InputSource::Stdin | InputSource::Stream { .. })
    }
}

impl InputFile {
    /// The size in bytes, if known.
    pub fn bytes(&self) -> Option<u64> {
        match self.source {
            InputSource::File { bytes, .. } => Some(bytes),
            InputSource::Member { ref member, .. } => Some(member.bytes),
            _ => None,
        }
    }

    /// The name of a table made of this input: the file's stem, with what no name may have replaced
    /// by underscores; `stdin` for standard input. `a.csv.gz` has the stem `a`.
    pub fn table_name(&self) -> String {
        let path = match &self.source {
            InputSource::Stdin => return "stdin".to_owned(),
            InputSource::Member { member, .. } => Path::new(&member.name),
            InputSource::File { path, .. } | InputSource::Stream { path } => path,
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

    /// Checks that a file is still as it was when the load was planned.
    ///
    /// # Errors
    /// `Unavailable` when size or time differ: a row may be missing or half new.
    pub fn check_unchanged(&self) -> Result<()> {
        let InputSource::File { path, bytes, modified } = &self.source else {
            return Ok(());
        };
        let now = fs::metadata(path).map_err(|error| Error::io("read", path, &error))?;
        if now.len() != *bytes {
            return Err(Error::Unavailable(format!(
                "{} changed while it was read: it had {bytes} bytes and has {} now; load it again once \
                 it is complete",
                self.name,
                now.len()
            )));
        }
        if now.modified().ok() != *modified {
            return Err(Error::Unavailable(format!(
                "{} was written to while it was read; load it again once it is complete",
                self.name
            )));
        }
        Ok(())
    }
}

/// The inputs that arguments name, in their order; what a glob finds is sorted by name.
///
/// # Errors
/// `Invalid` for a missing file, a directory, a file that may not be read, a glob that finds
/// nothing, and an input that is named twice.
pub fn expand_inputs(args: &[String]) -> Result<Vec<InputFile>> {
    if args.is_empty() {
        return Err(Error::Invalid(
            "no input: give a file, a glob such as 'data/*.csv', or - for standard input"
                .to_owned(),
        ));
    }
    let mut inputs = Vec::new();
    let mut seen = HashMap::new();
    for arg in args {
        for input in expand_one(arg)? {
            let key = match &input.source {
                InputSource::Stdin => PathBuf::from(STDIN),
                InputSource::File { path, .. } | InputSource::Stream { path } => canonical(path)?,
                InputSource::Member { archive, member } => {
                    // No name of a file has a NUL.
                    let mut key = canonical(archive)?.into_os_string();
                    key.push(format!("\0{}", member.name));
                    PathBuf::from(key)
                }
            };
            if let Some(first) = seen.insert(key, arg) {
                return Err(Error::Invalid(format!(
                    "{} is named twice, by {first} and by {arg}: its rows would be loaded twice",
                    input.name
                )));
            }
            inputs.push(input);
        }
    }
    Ok(inputs)
}

fn canonical(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).map_err(|error| Error::io("open", path, &error))
}

/// The inputs of one argument. A file of that very name comes before a glob.
fn expand_one(arg: &str) -> Result<Vec<InputFile>> {
    if arg == STDIN {
        return Ok(vec![InputFile { name: STDIN.to_owned(), source: InputSource::Stdin }]);
    }
    let is_glob = arg.contains(['*', '?', '[']);
    if fs::symlink_metadata(arg).is_ok() {
        return Ok(vec![open_file(arg.to_owned(), Path::new(arg))?]);
    }
    if let Some((archive, member)) = split_argument(arg) {
        let shown = archive.to_string_lossy();
        return find_members(&archive, &shown, member);
    }
    if !is_glob {
        return Ok(vec![open_file(arg.to_owned(), Path::new(arg))?]);
    }
    let paths =
        glob::glob(arg).map_err(|error| Error::Invalid(format!("{arg} is no glob: {error}")))?;
    let mut files = Vec::new();
    for path in paths {
        let path = path.map_err(|error| Error::io("read", error.path(), error.error()))?;
        // A directory beside the files is not meant by a glob.
        if !path.is_dir() {
            files.push(open_file(path.to_string_lossy().into_owned(), &path)?);
        }
    }
    if files.is_empty() {
        return Err(Error::Invalid(format!("no file matches {arg}")));
    }
    Ok(files)
}

/// Opens the file, so that one that may not be read is told before the load, not in its middle.
fn open_file(name: String, path: &Path) -> Result<InputFile> {
    let metadata = fs::metadata(path).map_err(|error| Error::io("open", path, &error))?;
    if metadata.is_dir() {
        return Err(Error::Invalid(format!(
            "{name} is a directory: name its files, as in '{}/*.csv'",
            name.trim_end_matches('/')
        )));
    }
    if !metadata.is_file() {
        return Ok(InputFile { name, source: InputSource::Stream { path: path.to_owned() } });
    }
    let file = fs::File::open(path).map_err(|error| Error::io("open", path, &error))?;
    let metadata = file.metadata().map_err(|error| Error::io("open", path, &error))?;
    if let Some(member) = only_member(path, &name)? {
        return Ok(member);
    }
    let source = InputSource::File {
        path: path.to_owned(),
        bytes: metadata.len(),
        modified: metadata.modified().ok(),
    };
    Ok(InputFile { name, source })
}

#[cfg(test)]
mod tests;
