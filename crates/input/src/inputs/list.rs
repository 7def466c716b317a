//! The inputs of a load in few bytes each: there may be a million of them.
//!
//! An input as it is used, an [`InputFile`], has its name twice, once as a path; here a file whose path is its name is
//! 24 bytes and its name. What else an input may be (a member of an archive, a pipe) is kept as it is.
//!
//! The list is shared: a copy of it costs nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use coload_places::Objects;
use coload_types::Result;

use super::texts::Texts;
use super::{InputFile, InputSource};
use crate::disk::FileIdentity;
use crate::names::Names;
use crate::open::TextInput;
use crate::raw::RawFile;

/// Inputs in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inputs {
    names: Arc<Names>,
    sources: Arc<Sources>,
    /// Of small files.
    texts: Arc<Texts>,
}

/// Where inputs are read from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Sources {
    /// From places of their own.
    Each(EachSource),
    /// All of them come in order from one place.
    Streams(PathBuf),
    /// They stand one after the other in a file; where each ends.
    Parts(PathBuf, Vec<u64>),
}

impl Default for Sources {
    fn default() -> Self {
        Sources::Each(EachSource::default())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct EachSource {
    files: Vec<File>,
    /// The device of each file from a number on.
    devices: Vec<(usize, u64)>,
    /// Inputs that are no [`File`].
    others: BTreeMap<usize, InputSource>,
}

/// A file whose path is its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct File {
    inode: u64,
    bytes: u64,
    /// Nanoseconds since the epoch; [`OTHER`] where the input is no such file.
    modified_ns: i64,
}

/// Bytes of an input that is no [`File`], and what it holds: a name of its own, and what tells its version.
const OTHER_BYTES: usize = 300;

/// Marks an input that is kept as it is.
const OTHER: i64 = i64::MIN;

impl File {
    const OTHER: File = File { inode: 0, bytes: 0, modified_ns: OTHER };

    /// The file, if it can be told in so few bytes.
    fn of(name: &str, source: &InputSource) -> Option<(File, u64)> {
        let InputSource::File { path, identity } = source else { return None };
        let FileIdentity { device, inode, bytes, modified } = *identity;
        let modified_ns = to_ns(modified?)?;
        let same = path.as_os_str() == Path::new(name).as_os_str();
        same.then_some((File { inode, bytes, modified_ns }, device))
    }
}

/// A time as nanoseconds since the epoch, if it is in reach.
fn to_ns(time: SystemTime) -> Option<i64> {
    let ns = |duration: Duration| i64::try_from(duration.as_nanos()).ok();
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => ns(since),
        Err(before) => ns(before.duration()).map(|ns| -ns),
    }
}

fn from_ns(ns: i64) -> SystemTime {
    let duration = Duration::from_nanos(ns.unsigned_abs());
    match ns < 0 {
        true => SystemTime::UNIX_EPOCH - duration,
        false => SystemTime::UNIX_EPOCH + duration,
    }
}

impl EachSource {
    fn push(&mut self, name: &str, source: InputSource) {
        let number = self.files.len();
        let Some((file, device)) = File::of(name, &source) else {
            self.files.push(File::OTHER);
            self.others.insert(number, source);
            return;
        };
        if self.devices.last().is_none_or(|(_, last)| *last != device) {
            self.devices.push((number, device));
        }
        self.files.push(file);
    }

    /// Which file an input is, if it is one that can be told by that.
    fn identity(&self, number: usize) -> Option<FileIdentity> {
        let file = self.files[number];
        if file.modified_ns == OTHER {
            return match self.others.get(&number)? {
                InputSource::File { identity, .. } => Some(*identity),
                InputSource::Member { archive, .. } => archive.identity().copied(),
                _ => None,
            };
        }
        let next = self.devices.partition_point(|(first, _)| *first <= number);
        Some(FileIdentity {
            device: self.devices[next - 1].1,
            inode: file.inode,
            bytes: file.bytes,
            modified: Some(from_ns(file.modified_ns)),
        })
    }

    fn source(&self, number: usize, name: &str) -> InputSource {
        if let Some(other) = self.others.get(&number) {
            return other.clone();
        }
        match self.identity(number) {
            Some(identity) => InputSource::File { path: PathBuf::from(name), identity },
            None => InputSource::Stdin,
        }
    }
}

impl Inputs {
    /// Inputs of these names that come in order, all from a place.
    pub fn streams(names: Arc<Names>, place: PathBuf) -> Self {
        let texts = Arc::default();
        Inputs { names, sources: Arc::new(Sources::Streams(place)), texts }
    }

    /// Inputs of these names that stand one after the other in a file; `ends` says where each ends.
    ///
    /// # Panics
    /// When there are more names than ends, or fewer.
    pub fn parts(names: Arc<Names>, file: PathBuf, ends: Vec<u64>) -> Self {
        assert_eq!(names.len(), ends.len(), "inputs have names and ends");
        let texts = Arc::default();
        Inputs { names, sources: Arc::new(Sources::Parts(file, ends)), texts }
    }

    /// Number of inputs.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no inputs.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// An input.
    ///
    /// # Panics
    /// When there is no such input.
    pub fn at(&self, number: usize) -> InputFile {
        let name = self.name(number);
        let source = match &*self.sources {
            Sources::Each(each) => each.source(number, &name),
            Sources::Streams(path) => InputSource::Stream { path: path.clone() },
            Sources::Parts(path, ends) => {
                let start = number.checked_sub(1).map_or(0, |before| ends[before]);
                InputSource::Part { path: path.clone(), start, bytes: ends[number] - start }
            }
        };
        InputFile { name, source }
    }

    /// The text of an input, if it was read and kept when the input was found, and is not empty: all that it holds, as it
    /// is stored.
    pub fn text(&self, number: usize) -> Option<&[u8]> {
        self.texts.get(number)
    }

    /// Opens an input to be read as text, which is there if it was kept.
    ///
    /// # Errors
    /// As [`TextInput::open`].
    ///
    /// # Panics
    /// When there is no such input.
    pub fn open(&self, number: usize) -> Result<TextInput> {
        match self.text(number) {
            Some(_) => TextInput::of_file(RawFile::of_text(self.clone(), number)),
            None => TextInput::open(&self.at(number)),
        }
    }

    /// An input, if there is one of that number.
    pub fn get(&self, number: usize) -> Option<InputFile> {
        (number < self.len()).then(|| self.at(number))
    }

    /// The first input, if there is one.
    pub fn first(&self) -> Option<InputFile> {
        self.get(0)
    }

    /// The inputs, one after the other.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = InputFile> + DoubleEndedIterator + '_ {
        (0..self.len()).map(|number| self.at(number))
    }

    /// The name of an input.
    ///
    /// # Panics
    /// When there is no such input.
    pub fn name(&self, number: usize) -> String {
        self.names.get(number)
    }

    /// The names of all.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// As [`InputFile::bytes`].
    ///
    /// # Panics
    /// When there is no such input.
    pub fn bytes(&self, number: usize) -> Option<u64> {
        match &*self.sources {
            Sources::Each(each) if each.files[number].modified_ns != OTHER => {
                Some(each.files[number].bytes)
            }
            _ => self.at(number).bytes(),
        }
    }

    /// As [`InputFile::identity`].
    ///
    /// # Panics
    /// When there is no such input.
    pub fn identity(&self, number: usize) -> Option<FileIdentity> {
        match &*self.sources {
            Sources::Each(each) => each.identity(number),
            _ => None,
        }
    }

    /// Whether an input is a file of which any part can be read.
    ///
    /// # Panics
    /// When there is no such input.
    pub fn is_file(&self, number: usize) -> bool {
        let Sources::Each(each) = &*self.sources else { return false };
        match each.files[number].modified_ns {
            OTHER => matches!(each.others.get(&number), Some(InputSource::File { .. })),
            _ => true,
        }
    }

    /// The first input that can be read once only.
    pub fn read_once(&self) -> Option<InputFile> {
        match &*self.sources {
            Sources::Each(each) => {
                let once = each.others.iter().find(|(_, source)| source.is_read_once());
                once.map(|(number, _)| self.at(*number))
            }
            Sources::Streams(_) => self.first(),
            Sources::Parts(..) => None,
        }
    }

    /// The objects among the inputs, all of which were found together; `None` when there are none.
    fn objects(&self) -> Option<Arc<Objects>> {
        let Sources::Each(each) = &*self.sources else { return None };
        each.others.values().find_map(|source| match source {
            InputSource::Object(object) => Some(Arc::clone(object.all())),
            _ => None,
        })
    }

    /// Whether bytes of inputs come from other machines.
    pub fn are_far(&self) -> bool {
        self.objects().is_some()
    }

    /// Fetches the objects among the inputs as they are asked for, until [`Inputs::read_ahead`].
    pub fn look(&self) {
        if let Some(objects) = self.objects() {
            objects.look();
        }
    }

    /// Begins to fetch the objects among the inputs, from an input on, before they are asked for: so many bytes may be there.
    pub fn read_ahead(&self, bytes: usize, from: usize) {
        let Some(objects) = self.objects() else { return };
        match (from > 0 && from < self.len()).then(|| self.at(from).source) {
            Some(InputSource::Object(first)) => first.read_ahead(bytes),
            _ => objects.read_ahead(bytes),
        }
    }

    /// Bytes that the list takes.
    pub fn held_bytes(&self) -> usize {
        let others = match &*self.sources {
            Sources::Each(each) => each.others.len() * OTHER_BYTES,
            Sources::Streams(_) | Sources::Parts(..) => 0,
        };
        self.names.held_bytes() + self.len() * size_of::<File>() + others + self.texts.held_bytes()
    }
}

impl FromIterator<InputFile> for Inputs {
    fn from_iter<T: IntoIterator<Item = InputFile>>(inputs: T) -> Self {
        let mut list = InputList::default();
        inputs.into_iter().for_each(|input| list.push(input));
        list.finish()
    }
}

impl From<Vec<InputFile>> for Inputs {
    fn from(inputs: Vec<InputFile>) -> Self {
        inputs.into_iter().collect()
    }
}

/// Inputs that are found one after the other.
#[derive(Debug, Default)]
pub struct InputList {
    names: Names,
    sources: EachSource,
    texts: Texts,
}

impl InputList {
    /// None yet; of their texts so many bytes are kept.
    pub fn with_texts(room: usize) -> Self {
        InputList { texts: Texts::new(room), ..InputList::default() }
    }

    /// Adds an input behind those before.
    pub fn push(&mut self, input: InputFile) {
        self.push_read(input, &[]);
    }

    /// The same with its text, if that was read; else it is empty.
    pub fn push_read(&mut self, input: InputFile, text: &[u8]) {
        self.sources.push(&input.name, input.source);
        self.names.push(&input.name);
        self.texts.push(text);
    }

    /// The inputs that were added, in their order.
    pub fn finish(self) -> Inputs {
        Inputs {
            names: Arc::new(self.names),
            sources: Arc::new(Sources::Each(self.sources)),
            texts: Arc::new(self.texts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, path: &str, device: u64, modified: Option<SystemTime>) -> InputFile {
        let identity = FileIdentity { device, inode: 7 + device, bytes: 9, modified };
        let source = InputSource::File { path: PathBuf::from(path), identity };
        InputFile { name: name.to_owned(), source }
    }

    #[test]
    fn inputs_come_back_as_they_were() {
        let epoch = SystemTime::UNIX_EPOCH;
        let far = epoch.checked_add(Duration::from_secs(1 << 40));
        let stream = InputSource::Stream { path: PathBuf::from("/dev/fd/9") };
        let given = vec![
            file("a/b.csv", "a/b.csv", 1, Some(epoch + Duration::from_nanos(1_234_567_891))),
            file("a/c.csv", "a/c.csv", 1, Some(epoch - Duration::from_nanos(5))),
            InputFile { name: "-".to_owned(), source: InputSource::Stdin },
            file("a/d.csv", "a/d.csv", 2, Some(epoch)),
            file("a/e.csv", "a/other.csv", 2, Some(epoch)),
            file("a/f.csv", "a/f.csv", 2, None),
            file("a/g.csv", "a/g.csv", 2, far),
            InputFile { name: "a/pipe".to_owned(), source: stream },
            file("b/a.csv", "b/a.csv", 1, Some(epoch)),
        ];
        let inputs = Inputs::from(given.clone());
        assert_eq!(inputs.iter().collect::<Vec<_>>(), given);
        for (number, input) in given.iter().enumerate() {
            assert_eq!(inputs.identity(number).as_ref(), input.identity(), "{number}");
            assert_eq!(inputs.bytes(number), input.bytes(), "{number}");
            assert_eq!(inputs.is_file(number), matches!(input.source, InputSource::File { .. }));
        }
        assert_eq!(inputs.read_once().map(|input| input.name), Some("-".to_owned()));
        assert_eq!(inputs.get(given.len()), None);
    }

    #[test]
    fn parts_stand_one_after_the_other() {
        let names: Arc<Names> = Arc::new(["a", "b", "c"].iter().collect());
        let place = PathBuf::from("spool");
        let parts = Inputs::parts(Arc::clone(&names), place.clone(), vec![5, 5, 9]);
        let part = |start, bytes| InputSource::Part { path: place.clone(), start, bytes };
        let sources: Vec<InputSource> = parts.iter().map(|input| input.source).collect();
        assert_eq!(sources, [part(0, 5), part(5, 0), part(5, 4)]);
        assert_eq!(parts.read_once(), None);
        assert!(Inputs::streams(names, place).read_once().is_some());
    }
}
