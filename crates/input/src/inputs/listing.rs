//! Inputs that are found one after the other, of which only some are kept: there may be a million of them.
//!
//! ```text
//!   arguments -> files of folders, pages of lists of objects -> met, told -> kept by some
//! ```
//!
//! Cost: what is kept; a page of a list. The folders of a pattern that has stars only in its last part are read entry by
//! entry; of other patterns a folder at a time is in memory.

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use coload_places::{PlaceOptions, find_objects_where};
use coload_threads::in_order;
use coload_types::{Error, Result};
use glob::Pattern;

use super::list::InputList;
use super::{
    InputFile, Inputs, expand_one, find_twice, is_object, object_of, open_found, open_object,
};
use crate::archive::{SheetChoice, split_argument};

/// Paths that are looked at together, how many of them by a thread in turn, and by how many threads.
const BATCH_PATHS: usize = 4096;
const STEP_PATHS: usize = 64;
const THREADS_MAX: usize = 8;

/// An input that was found, before it is opened.
#[derive(Debug, Clone, Copy)]
pub struct Met<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its length as it is stored; 0 where that is not known.
    pub bytes: u64,
    /// What its server calls this version, if it is an object whose list tells.
    pub etag: Option<&'a str>,
    /// When it was written, nanoseconds since the epoch.
    pub modified_ns: i128,
}

/// Whether an input is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// It is in the list.
    Yes,
    /// It was only met.
    No,
}

/// The inputs that arguments name, of which those are in the list that `keep` wants; it is asked once for each, in any order
/// of those of one argument, which are sorted by name in the list.
///
/// # Errors
/// As [`super::expand_inputs_with`]; an input that is named twice is told if both are kept.
pub fn expand_inputs_where(
    args: &[String],
    places: &PlaceOptions,
    sheets: &SheetChoice,
    keep: &mut dyn FnMut(Met<'_>) -> Keep,
) -> Result<Inputs> {
    let mut inputs = InputList::default();
    for arg in args {
        let mut found = match is_object(arg) {
            true => objects(arg, (places, sheets), keep)?,
            false => files(arg, sheets, keep)?,
        };
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found.into_iter().for_each(|input| inputs.push(input));
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

fn objects(
    arg: &str,
    (places, sheets): (&PlaceOptions, &SheetChoice),
    keep: &mut dyn FnMut(Met<'_>) -> Keep,
) -> Result<Vec<InputFile>> {
    let (address, member) = object_of(arg);
    let objects = find_objects_where(address, places, &mut |name, bytes, etag, modified_us| {
        let modified_ns = i128::from(modified_us) * 1000;
        keep(Met { name, bytes, etag, modified_ns }) == Keep::Yes
    })?;
    let mut found = Vec::with_capacity(objects.len());
    for number in 0..objects.len() {
        found.extend(open_object(objects.at(number), member, sheets)?);
    }
    Ok(found)
}

fn files(
    arg: &str,
    sheets: &SheetChoice,
    keep: &mut dyn FnMut(Met<'_>) -> Keep,
) -> Result<Vec<InputFile>> {
    let mut found = Vec::new();
    let is_glob = arg.contains(['*', '?', '['])
        && fs::symlink_metadata(arg).is_err()
        && split_argument(arg).is_none();
    if !is_glob {
        // One input, or the members of an archive, which are few.
        let mut list = InputList::default();
        expand_one(arg, sheets, &mut list)?;
        for input in list.finish().iter() {
            let (name, bytes) = (input.name.as_str(), input.bytes().unwrap_or(0));
            let modified = input.identity().and_then(|identity| identity.modified);
            if keep(Met { name, bytes, etag: None, modified_ns: ns(modified) }) == Keep::Yes {
                found.push(input);
            }
        }
        return Ok(found);
    }
    glob_files(arg, Order::Any, sheets, keep, &mut |input| found.push(input))?;
    Ok(found)
}

/// In which order the files of a pattern come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// That of their names, folder by folder.
    Sorted,
    /// As the system lists them: their names are not held.
    Any,
}

/// Gives the files of a pattern that are kept.
///
/// # Errors
/// `Invalid` when there is none, or when one cannot be opened.
pub fn glob_files(
    arg: &str,
    order: Order,
    sheets: &SheetChoice,
    keep: &mut dyn FnMut(Met<'_>) -> Keep,
    found: &mut dyn FnMut(InputFile),
) -> Result<()> {
    let (mut paths, mut any) = (Vec::new(), false);
    for_each_path(arg, order, &mut |path| {
        paths.push(path);
        if paths.len() == BATCH_PATHS {
            any |= take_files(&std::mem::take(&mut paths), sheets, keep, found)?;
        }
        Ok(())
    })?;
    any |= take_files(&paths, sheets, keep, found)?;
    match any {
        true => Ok(()),
        false => Err(Error::Invalid(format!("no file matches {arg}"))),
    }
}

/// Looks at the files of paths and opens those that are kept; gives whether one of the paths is a file.
fn take_files(
    paths: &[PathBuf],
    sheets: &SheetChoice,
    keep: &mut dyn FnMut(Met<'_>) -> Keep,
    found: &mut dyn FnMut(InputFile),
) -> Result<bool> {
    let metas = by_threads(paths, |path| {
        fs::metadata(path).map_err(|error| Error::io("open", path, &error))
    })?;
    // A directory beside the files is not meant by a glob.
    let files = paths.iter().zip(&metas).filter(|(_, meta)| !meta.is_dir());
    let mut any = false;
    let mut kept = Vec::new();
    for (path, meta) in files {
        any = true;
        let name = path.to_string_lossy().into_owned();
        let modified_ns = ns(meta.modified().ok());
        let met = Met { name: &name, bytes: meta.len(), etag: None, modified_ns };
        if keep(met) == Keep::Yes {
            kept.push((name, path, meta));
        }
    }
    let opened =
        by_threads(&kept, |(name, path, meta)| open_found(name.clone(), path, meta, sheets))?;
    opened.into_iter().for_each(found);
    Ok(any)
}

/// What becomes of each of some things, in their order. Most of it is waiting for the system.
fn by_threads<T: Sync, U: Send>(
    things: &[T],
    each: impl Fn(&T) -> Result<U> + Sync,
) -> Result<Vec<U>> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let steps: Vec<&[T]> = things.chunks(STEP_PATHS).collect();
    let mut all = Vec::with_capacity(things.len());
    let make = |step: usize| steps[step].iter().map(&each).collect::<Result<Vec<U>>>();
    in_order(steps.len(), threads.min(THREADS_MAX), make, |_, mut made| {
        all.append(&mut made);
        Ok(())
    })?;
    Ok(all)
}

fn ns(time: Option<SystemTime>) -> i128 {
    let since = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_nanos() as i128)
}

/// Calls `each` for the paths that are like a pattern.
fn for_each_path(
    arg: &str,
    order: Order,
    each: &mut dyn FnMut(PathBuf) -> Result<()>,
) -> Result<()> {
    let wrong = |error| Error::Invalid(format!("{arg} is no glob: {error}"));
    let (folder, last) = arg.rsplit_once('/').unwrap_or(("", arg));
    let is_simple = !folder.contains(['*', '?', '[']) && !last.contains("**");
    if !is_simple {
        for path in glob::glob(arg).map_err(wrong)? {
            each(path.map_err(|error| Error::io("read", error.path(), error.error()))?)?;
        }
        return Ok(());
    }
    let pattern = Pattern::new(last).map_err(wrong)?;
    let dir = match (folder, arg.starts_with('/')) {
        ("", true) => Path::new("/"),
        ("", false) => Path::new("."),
        (folder, _) => Path::new(folder),
    };
    if !dir.is_dir() {
        return Ok(());
    }
    let fail = |error: std::io::Error| Error::io("read", dir, &error);
    // As globs name files: without a dot for the folder that one is in.
    let mut each = |name: &str| match folder {
        "" if !arg.starts_with('/') => each(PathBuf::from(name)),
        _ => each(dir.join(name)),
    };
    let mut names: Vec<Box<str>> = Vec::new();
    for entry in fs::read_dir(dir).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        let Some(name) = name.to_str().filter(|name| pattern.matches(name)) else { continue };
        match order {
            Order::Any => each(name)?,
            Order::Sorted => names.push(name.into()),
        }
    }
    names.sort_unstable();
    names.iter().try_for_each(|name| each(name))
}
