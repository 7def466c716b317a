//! A file that has its name only when it is whole.
//!
//! It is written beside its name and renamed at the end: what had the name before survives a load that fails, two
//! loads that write the same file do not mix, and an input is never written over.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use coload_input::{FileIdentity, InputSource, Inputs};
use coload_types::{Error, Result};

/// Tells the unfinished files of a process apart.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A file on its way; dropped before [`OutputFile::commit`], it leaves nothing.
#[derive(Debug)]
pub struct OutputFile {
    /// The name that it gets.
    path: PathBuf,
    /// Where it is written; `None` for a pipe or a device, which is written as it is.
    unfinished: Option<PathBuf>,
}

impl OutputFile {
    /// Makes the file beside its name; gives what is to be written to.
    ///
    /// # Errors
    /// `Invalid` when it cannot be made.
    pub fn create(path: &Path) -> Result<(Self, File)> {
        let fail = |e| Error::io("create", path, &e);
        if std::fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
            let file = OpenOptions::new().write(true).open(path).map_err(fail)?;
            return Ok((OutputFile { path: path.to_owned(), unfinished: None }, file));
        }
        // The file that a link leads to is meant, not the link.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if path.is_dir() {
            return Err(Error::Invalid(format!(
                "cannot create {}: it is a directory",
                path.display()
            )));
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        name.push(format!(".{}-{number}.tmp", std::process::id()));
        let unfinished = path.with_file_name(name);
        // Who could not read what has the name now cannot read what gets it.
        let mode = std::fs::metadata(&path).map_or(0o666, |meta| meta.mode() & 0o777);
        let mut new = OpenOptions::new();
        let open = new.read(true).write(true).create_new(true).mode(mode).open(&unfinished);
        let file = open.map_err(fail)?;
        Ok((OutputFile { path, unfinished: Some(unfinished) }, file))
    }

    /// Where its bytes are until it has its name.
    pub fn written_path(&self) -> &Path {
        self.unfinished.as_ref().unwrap_or(&self.path)
    }

    /// Gives it its name; what was written is durable then.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails; what had the name still has it.
    pub fn commit(mut self) -> Result<()> {
        let Some(unfinished) = self.unfinished.take() else { return Ok(()) };
        let named = File::open(&unfinished)
            .and_then(|file| file.sync_all())
            .and_then(|()| std::fs::rename(&unfinished, &self.path));
        named.map_err(|e| {
            let _ = std::fs::remove_file(&unfinished);
            Error::io("write", &self.path, &e)
        })
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(unfinished) = &self.unfinished {
            let _ = std::fs::remove_file(unfinished);
        }
    }
}

/// Refuses a file to be written that is an input, or one of `others`, or lies in one of these that is a folder. A
/// name is not enough to tell: two paths may lead to one file.
///
/// # Errors
/// `Invalid` that names both.
pub fn check_output(
    flag: &str,
    path: &Path,
    inputs: &Inputs,
    others: &[(PathBuf, &str)],
) -> Result<()> {
    let refuse = |what: &str| {
        Err(Error::Invalid(format!(
            "{flag} {}: that is {what}, which would be written over; give another file",
            path.display()
        )))
    };
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let place = std::fs::canonicalize(path).or_else(|_| std::fs::canonicalize(parent));
    for (other, what) in others {
        let Ok(other) = std::fs::canonicalize(other) else { continue };
        if other.is_dir() && place.as_ref().is_ok_and(|place| place.starts_with(&other)) {
            return refuse(&format!("a place in {what}"));
        }
    }
    let Ok(meta) = std::fs::metadata(path) else { return Ok(()) };
    if !meta.is_file() {
        return Ok(());
    }
    let is = |other: &FileIdentity| FileIdentity::of(&meta).is_same_file(other);
    let is_path =
        |path: &Path| std::fs::metadata(path).is_ok_and(|meta| is(&FileIdentity::of(&meta)));
    for input in inputs.iter() {
        let same = match (&input.source, input.identity()) {
            (_, Some(identity)) => is(identity),
            (InputSource::Stdin, _) => is_path(Path::new("/proc/self/fd/0")),
            (InputSource::Stream { path } | InputSource::Part { path, .. }, _) => is_path(path),
            _ => false,
        };
        if same {
            return refuse(&format!("the input {}", input.name));
        }
    }
    match others.iter().find(|(other, _)| is_path(other)) {
        Some((_, what)) => refuse(what),
        None => Ok(()),
    }
}
