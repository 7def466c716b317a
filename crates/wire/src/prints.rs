//! What tells inputs from others, or from themselves after a change.
//!
//! A load may have a million inputs, so they are held as 24 bytes and a name each, and shared.

use std::sync::Arc;

use coload_input::Names;
use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Error, Result};

use crate::read_text;

/// Fewest bytes of an input in a description.
pub(crate) const PRINT_BYTES_MIN: usize = 18;
/// Most bytes of an input in a description, beside its name.
const PRINT_BYTES_MAX: usize = 37;

/// How a description has the names of its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamesAre {
    /// Each with its folder.
    Whole,
    /// Without the folder of the name before.
    Short,
}

/// Longest folder that a name need not repeat, the longest that systems take: a few bytes of a hostile client must not
/// become a long name each.
const FOLDER_BYTES_MAX: usize = 4096;
/// Kind of a name: with its folder.
const WHOLE_NAME: u8 = 0;
/// Kind of a name: in the folder of the one before.
const IN_THE_SAME_FOLDER: u8 = 1;

/// What tells an input from another one, or from itself after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputPrint {
    /// Name of the input, as it was given.
    pub name: String,
    /// Length of the input as it is stored, bytes.
    pub bytes: u64,
    /// When it was last written, microseconds since the epoch.
    pub modified_us: i64,
    /// Checksum of its first and last bytes.
    pub ends: u64,
}

/// The inputs of a load, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prints {
    names: Arc<Names>,
    prints: Arc<Vec<Print>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Print {
    bytes: u64,
    modified_us: i64,
    ends: u64,
}

impl FromIterator<InputPrint> for Prints {
    fn from_iter<T: IntoIterator<Item = InputPrint>>(prints: T) -> Self {
        let mut list = PrintList::default();
        prints.into_iter().for_each(|print| list.push(&print));
        list.finish()
    }
}

impl Prints {
    /// Number of inputs.
    pub fn len(&self) -> usize {
        self.prints.len()
    }

    /// Whether there are no inputs.
    pub fn is_empty(&self) -> bool {
        self.prints.is_empty()
    }

    /// Names of the inputs, in their order.
    pub fn names(&self) -> &Arc<Names> {
        &self.names
    }

    /// Stored bytes of an input, if there is one of that number.
    pub fn bytes(&self, number: usize) -> Option<u64> {
        self.prints.get(number).map(|print| print.bytes)
    }

    /// The inputs, one after the other.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = InputPrint> + '_ {
        (0..self.len()).map(|number| {
            let Print { bytes, modified_us, ends } = self.prints[number];
            InputPrint { name: self.names.get(number), bytes, modified_us, ends }
        })
    }

    pub(crate) fn put(&self, number: usize, names: NamesAre, out: &mut Vec<u8>) {
        let Print { bytes, modified_us, ends } = self.prints[number];
        match names {
            NamesAre::Whole => put_bytes(out, self.names.get(number).as_bytes()),
            NamesAre::Short => self.put_short(number, out),
        }
        put_varint(out, bytes);
        out.extend(modified_us.to_le_bytes());
        out.extend(ends.to_le_bytes());
    }

    /// Appends a name without its folder, if the one before has the same.
    fn put_short(&self, number: usize, out: &mut Vec<u8>) {
        let (folder, rest) = self.names.parts(number);
        let before = number.checked_sub(1).map(|before| self.names.parts(before).0);
        if before == Some(folder) && (1..=FOLDER_BYTES_MAX).contains(&folder.len()) {
            out.push(IN_THE_SAME_FOLDER);
            put_bytes(out, rest.as_bytes());
        } else {
            out.push(WHOLE_NAME);
            put_bytes(out, self.names.get(number).as_bytes());
        }
    }

    /// Reads as many inputs as [`Self::put`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when they are none.
    pub(crate) fn read(reader: &mut ByteReader<'_>, names: NamesAre, count: usize) -> Result<Self> {
        let mut prints = PrintList::default();
        for number in 0..count {
            let name = match names {
                NamesAre::Whole => read_text(reader)?,
                NamesAre::Short => match reader.u8()? {
                    WHOLE_NAME => read_text(reader)?,
                    IN_THE_SAME_FOLDER if number > 0 => {
                        let (folder, _) = prints.names.parts(number - 1);
                        if folder.len() > FOLDER_BYTES_MAX {
                            return Err(Error::Corrupt("a name in too long a folder".into()));
                        }
                        [folder, &read_text(reader)?].concat()
                    }
                    other => return Err(Error::Corrupt(format!("a name of kind {other}"))),
                },
            };
            prints.push(&InputPrint {
                name,
                bytes: reader.varint()?,
                modified_us: reader.u64()? as i64,
                ends: reader.u64()?,
            });
        }
        Ok(prints.finish())
    }

    /// At least as many bytes as they have in a description.
    pub(crate) fn bytes_at_most(&self) -> usize {
        let names = (0..self.len()).map(|number| {
            let (folder, rest) = self.names.parts(number);
            folder.len() + rest.len()
        });
        names.sum::<usize>() + PRINT_BYTES_MAX * self.len()
    }
}

/// Inputs that are looked at one after the other.
#[derive(Debug, Default)]
pub struct PrintList {
    names: Names,
    prints: Vec<Print>,
}

impl PrintList {
    /// Adds an input behind those before.
    pub fn push(&mut self, print: &InputPrint) {
        self.names.push(&print.name);
        let InputPrint { bytes, modified_us, ends, .. } = *print;
        self.prints.push(Print { bytes, modified_us, ends });
    }

    /// The inputs that were added, in their order.
    pub fn finish(self) -> Prints {
        Prints { names: Arc::new(self.names), prints: Arc::new(self.prints) }
    }
}
