//! Inputs that are found one after the other, of which only some are kept: there may be a million of them.
//!
//! ```text
//!   arguments -> files of folders, pages of lists of objects -> met, told -> kept by some
//! ```
//!
//! Cost: what is kept; a page of a list. The folders of a pattern that has stars only in its last part are read entry by
//! entry; of other patterns a folder at a time is in memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use coload_places::{PlaceOptions, find_objects_where};
use coload_threads::map_in_order;
use coload_types::{Error, Result};
use glob::Pattern;

use super::list::InputList;
use super::{
    Found, InputFile, Inputs, expand_one, find_twice, is_object, object_of, open_found,
    open_object, open_regular,
};
use crate::archive::{SheetChoice, split_argument};

/// Paths that are looked at together.
const BATCH_PATHS: usize = 4096;

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
    let wanted = Wanted::Those(keep);
    glob_files(arg, Order::Any, sheets, wanted, &mut |opened| found.push(opened.input))?;
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

/// Which of the files of a pattern are opened.
pub enum Wanted<'a> {
    /// All of them.
    All,
    /// Those that are kept.
    Those(&'a mut dyn FnMut(Met<'_>) -> Keep),
}

/// A path that is like a pattern.
struct Listed {
    path: PathBuf,
    /// Whether its folder tells that it is a regular file.
    is_regular: bool,
}

/// Gives the files of a pattern that are wanted.
///
/// # Errors
/// `Invalid` when there is none, or when one cannot be opened.
pub fn glob_files(
    arg: &str,
    order: Order,
    sheets: &SheetChoice,
    mut wanted: Wanted<'_>,
    found: &mut dyn FnMut(Found),
) -> Result<()> {
    let (mut paths, mut any) = (Vec::new(), false);
    let mut take = |paths: &[Listed]| match &mut wanted {
        Wanted::All => take_all(paths, sheets, found),
        Wanted::Those(keep) => take_kept(paths, sheets, keep, found),
    };
    for_each_path(arg, order, &mut |path| {
        paths.push(path);
        if paths.len() == BATCH_PATHS {
            any |= take(&std::mem::take(&mut paths))?;
        }
        Ok(())
    })?;
    any |= take(&paths)?;
    match any {
        true => Ok(()),
        false => Err(Error::Invalid(format!("no file matches {arg}"))),
    }
}

/// Opens the files of paths; gives whether one of the paths is a file.
fn take_all(paths: &[Listed], sheets: &SheetChoice, found: &mut dyn FnMut(Found)) -> Result<bool> {
    let opened = map_in_order(paths, |Listed { path, is_regular }| {
        let name = path.to_string_lossy().into_owned();
        if *is_regular {
            return open_regular(name, path, sheets).map(Some);
        }
        let meta = look_at(path)?;
        // A directory beside the files is not meant by a glob.
        match meta.is_dir() {
            true => Ok(None),
            false => open_found(name, path, &meta, sheets).map(Some),
        }
    })?;
    let mut any = false;
    for one in opened.into_iter().flatten() {
        any = true;
        found(one);
    }
    Ok(any)
}

/// Looks at the files of paths and opens those that are kept; gives whether one of the paths is a file.
fn take_kept(
    paths: &[Listed],
    sheets: &SheetChoice,
    keep: &mut dyn FnMut(Met<'_>) -> Keep,
    found: &mut dyn FnMut(Found),
) -> Result<bool> {
    let metas = map_in_order(paths, |listed| look_at(&listed.path))?;
    let files = paths.iter().zip(&metas).filter(|(_, meta)| !meta.is_dir());
    let mut any = false;
    let mut kept = Vec::new();
    for (Listed { path, .. }, meta) in files {
        any = true;
        let name = path.to_string_lossy().into_owned();
        let modified_ns = ns(meta.modified().ok());
        let met = Met { name: &name, bytes: meta.len(), etag: None, modified_ns };
        if keep(met) == Keep::Yes {
            kept.push((name, path, meta));
        }
    }
    let open = |(name, path, meta): &(String, &PathBuf, &fs::Metadata)| {
        open_found(name.clone(), path, meta, sheets)
    };
    map_in_order(&kept, open)?.into_iter().for_each(found);
    Ok(any)
}

fn look_at(path: &Path) -> Result<fs::Metadata> {
    fs::metadata(path).map_err(|error| Error::io("open", path, &error))
}

fn ns(time: Option<SystemTime>) -> i128 {
    let since = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_nanos() as i128)
}

/// Calls `each` for the paths that are like a pattern.
fn for_each_path(
    arg: &str,
    order: Order,
    each: &mut dyn FnMut(Listed) -> Result<()>,
) -> Result<()> {
    let wrong = |error| Error::Invalid(format!("{arg} is no glob: {error}"));
    let (folder, last) = arg.rsplit_once('/').unwrap_or(("", arg));
    let is_simple = !folder.contains(['*', '?', '[']) && !last.contains("**");
    if !is_simple {
        for path in glob::glob(arg).map_err(wrong)? {
            let path = path.map_err(|error| Error::io("read", error.path(), error.error()))?;
            each(Listed { path, is_regular: false })?;
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
    let mut each = |name: &str, is_regular: bool| {
        let path = match folder {
            "" if !arg.starts_with('/') => PathBuf::from(name),
            _ => dir.join(name),
        };
        each(Listed { path, is_regular })
    };
    let mut names: Vec<(Box<str>, bool)> = Vec::new();
    for entry in fs::read_dir(dir).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| pattern.matches(name)) else { continue };
        let is_regular = entry.file_type().is_ok_and(|kind| kind.is_file());
        match order {
            Order::Any => each(name, is_regular)?,
            Order::Sorted => names.push((name.into(), is_regular)),
        }
    }
    names.sort_unstable();
    names.iter().try_for_each(|(name, is_regular)| each(name, *is_regular))
}
