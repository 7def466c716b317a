//! Heads of pages.

use coload_arrow::{Fault, Result as FaultResult};

use super::thrift::{Compact, Kind, Result, Wrong, expect};

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    /// Places in the dictionary of the column chunk.
    Dictionary,
    /// Runs and packed numbers: truths.
    Runs,
    /// Packed numbers of old writers: levels.
    BitPacked,
    Deltas,
    DeltaLengths,
    DeltaTexts,
    /// Byte after byte of all values.
    Split,
}

impl Encoding {
    fn decode(number: i32) -> Option<Self> {
        Some(match number {
            0 => Encoding::Plain,
            2 | 8 => Encoding::Dictionary,
            3 => Encoding::Runs,
            4 => Encoding::BitPacked,
            5 => Encoding::Deltas,
            6 => Encoding::DeltaLengths,
            7 => Encoding::DeltaTexts,
            9 => Encoding::Split,
            _ => return None,
        })
    }
}

/// What a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageKind {
    /// Values of the dictionary.
    Dictionary { values: u32, encoding: Encoding },
    /// Rows: levels and values, compressed together.
    Data { values: u32, encoding: Encoding, levels: Encoding },
    /// Rows: levels of so many bytes, then values, which alone are compressed.
    DataTwo {
        values: u32,
        rows: Option<u32>,
        encoding: Encoding,
        levels: u32,
        repetitions: u32,
        compressed: bool,
    },
    /// What is not read.
    Other,
}

/// The head of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageHead {
    /// Bytes of the head itself.
    pub bytes: usize,
    /// Bytes behind it.
    pub stored: u32,
    /// These when they are decompressed.
    pub raw: u32,
    /// Their checksum, if the file has one.
    pub crc: Option<u32>,
    pub kind: PageKind,
}

/// Fields of the three kinds of heads, which are alike.
#[derive(Default)]
struct Fields {
    values: u32,
    rows: Option<u32>,
    encoding: i32,
    levels: i32,
    level_bytes: u32,
    repetition_bytes: u32,
    is_compressed: bool,
}

impl PageHead {
    /// Reads a head from the first of these bytes; `None` when it is longer than they are.
    ///
    /// # Errors
    /// `Damaged` when it is none, `Unknown` for encodings that are not known.
    pub(super) fn decode(bytes: &[u8]) -> FaultResult<Option<Self>> {
        let mut from = Compact::new(bytes);
        let (mut kind_number, mut raw, mut stored, mut crc) = (None, None, None, None);
        let (mut one, mut dictionary, mut two) = (None, None, None);
        let read = from.structure(|from, field, kind| {
            match field {
                1 => kind_number = Some(from.i32(kind)?),
                2 => raw = Some(from.u32(kind)?),
                3 => stored = Some(from.u32(kind)?),
                4 => crc = Some(from.i32(kind)? as u32),
                5 => one = Some(fields_of_one(from, kind)?),
                7 => dictionary = Some(fields_of_one(from, kind)?),
                8 => two = Some(fields_of_two(from, kind)?),
                _ => return Ok(false),
            }
            Ok(true)
        });
        match read {
            Ok(()) => {}
            Err(Wrong::Short) => return Ok(None),
            Err(wrong) => return Err(wrong.into()),
        }
        let damaged = |what: &str| Fault::Damaged(format!("the head of a page {what}"));
        let (Some(raw), Some(stored)) = (raw, stored) else {
            return Err(damaged("without its length"));
        };
        let encoding = |number: i32| {
            Encoding::decode(number).ok_or_else(|| {
                Fault::Unknown(format!("a page has encoding {number}, which is not read"))
            })
        };
        let kind = match (kind_number, one, dictionary, two) {
            (Some(0), Some(of), ..) => PageKind::Data {
                values: of.values,
                encoding: encoding(of.encoding)?,
                levels: encoding(of.levels)?,
            },
            (Some(2), _, Some(of), _) => {
                PageKind::Dictionary { values: of.values, encoding: encoding(of.encoding)? }
            }
            (Some(3), _, _, Some(of)) => PageKind::DataTwo {
                values: of.values,
                rows: of.rows,
                encoding: encoding(of.encoding)?,
                levels: of.level_bytes,
                repetitions: of.repetition_bytes,
                compressed: of.is_compressed,
            },
            (Some(0 | 2 | 3), ..) => return Err(damaged("without what its kind needs")),
            (Some(_), ..) => PageKind::Other,
            (None, ..) => return Err(damaged("without its kind")),
        };
        Ok(Some(PageHead { bytes: from.read_bytes(), stored, raw, crc, kind }))
    }
}

fn fields_of_one(from: &mut Compact<'_>, kind: Kind) -> Result<Fields> {
    let mut of = Fields::default();
    expect(kind, Kind::Struct)?;
    from.structure(|from, field, kind| {
        match field {
            1 => of.values = from.u32(kind)?,
            2 => of.encoding = from.i32(kind)?,
            // Of a dictionary it is whether it is sorted.
            3 if kind == Kind::Int => of.levels = from.i32(kind)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(of)
}

fn fields_of_two(from: &mut Compact<'_>, kind: Kind) -> Result<Fields> {
    let mut of = Fields { is_compressed: true, ..Fields::default() };
    expect(kind, Kind::Struct)?;
    from.structure(|from, field, kind| {
        match field {
            1 => of.values = from.u32(kind)?,
            3 => of.rows = Some(from.u32(kind)?),
            4 => of.encoding = from.i32(kind)?,
            5 => of.level_bytes = from.u32(kind)?,
            6 => of.repetition_bytes = from.u32(kind)?,
            7 => of.is_compressed = from.truth(kind)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(of)
}
