//! Rows of a column chunk.
//!
//! Cost: of a page of which some rows are read, levels and lengths of those before are passed over.

use std::ops::Range;
use std::sync::Arc;

use coload_arrow::{Bits, Fault, Result, Slice};

use super::head::Encoding;
use super::levels::{Hybrid, split_levels};
use super::schema::Stored;
use super::values::{Stock, Wanted};
use super::walk::{ColumnMap, PageAt};

/// The dictionary of a column chunk.
#[derive(Debug, Clone)]
pub struct Dictionary {
    stock: Stock,
}

impl Dictionary {
    /// Number of its values.
    pub fn len(&self) -> usize {
        self.stock.len()
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the values take.
    pub fn bytes(&self) -> usize {
        self.stock.bytes() as usize
    }

    /// The values, as rows of their type.
    ///
    /// # Errors
    /// `Damaged` when one is none of its type.
    pub fn slice(&self, stored: &Stored) -> Result<Slice<'static>> {
        let rows = self.stock.len();
        let values = self.stock.clone().finish(stored.physical, &stored.values)?;
        Ok(Slice::new(rows, None, values))
    }
}

/// The values of the page of a dictionary, which takes `bytes_max` at most.
///
/// # Errors
/// `Damaged` when it has fewer values than it says.
pub fn read_dictionary(
    stored: &Stored,
    map: &ColumnMap,
    page: impl FnOnce(&PageAt) -> Result<Vec<u8>>,
    bytes_max: u64,
) -> Result<Option<Dictionary>> {
    let Some((at, values)) = map.dictionary else { return Ok(None) };
    let bytes = page(&at)?;
    let values = values as usize;
    // Each text has its length, and each truth its bit.
    if values > bytes.len().saturating_mul(8) {
        return Err(Fault::Damaged(format!(
            "a dictionary of {values} values in {} bytes",
            bytes.len()
        )));
    }
    let mut stock = Stock::new(stored.physical, values);
    let wanted = Wanted { rows: values, skip: 0, take: values, bytes_max };
    stock.read(&bytes, Encoding::Plain, stored.physical, &wanted)?;
    Ok(Some(Dictionary { stock }))
}

/// Reads rows of a column chunk: as places in its dictionary, if `keyed`, else as values. `page` gives the bytes of a page
/// by its number; the values take `bytes_max` at most.
///
/// # Errors
/// `Damaged` when pages contradict themselves, `Unknown` for encodings that are not read, `TooLarge` when the values are
/// more than they may be; those of `page`.
pub fn read_rows(
    stored: &Stored,
    map: &ColumnMap,
    rows: Range<u64>,
    (dictionary, keyed): (Option<&Dictionary>, bool),
    page: &mut dyn FnMut(usize) -> Result<Arc<Vec<u8>>>,
    bytes_max: u64,
) -> Result<Slice<'static>> {
    let count = (rows.end - rows.start) as usize;
    let width = stored.physical.width().unwrap_or(1) as u64;
    match (count as u64).saturating_mul(width) {
        bytes if bytes > bytes_max => return Err(Fault::TooLarge(bytes)),
        _ => {}
    }
    let mut read = Read {
        stored,
        dictionary,
        bytes_max,
        stock: match keyed {
            true => Stock::Keys(Vec::with_capacity(count)),
            false => Stock::new(stored.physical, count),
        },
        valid: None,
        keys: Vec::new(),
    };
    for number in map.pages_of(&rows) {
        let at = map.page(number);
        let here = at.row_range();
        let from = rows.start.max(here.start) - here.start;
        let to = rows.end.min(here.end) - here.start;
        read.page(at, &page(number)?, from as usize, (to - from) as usize)?;
    }
    let found = read.stock.len();
    if found != count {
        return Err(Fault::Damaged(format!("{found} rows where {count} are expected")));
    }
    let values = read.stock.finish(stored.physical, &stored.values)?;
    let valid = read.valid.map(|valid| {
        let byte = |valid: &[bool]| {
            valid.iter().rev().fold(0_u8, |byte, valid| byte << 1 | u8::from(*valid))
        };
        Bits::new(valid.chunks(8).map(byte).collect())
    });
    Ok(Slice::new(count, valid, values))
}

/// The values of entries of a column in lists, without those that have none.
#[derive(Debug)]
pub(super) struct ListValues<'a> {
    read: Read<'a>,
}

impl<'a> ListValues<'a> {
    /// No values yet; they take `bytes_max` at most.
    pub(super) fn new(
        stored: &'a Stored,
        dictionary: Option<&'a Dictionary>,
        bytes_max: u64,
    ) -> Self {
        let stock = Stock::new(stored.physical, 0);
        ListValues {
            read: Read { stored, dictionary, bytes_max, stock, valid: None, keys: Vec::new() },
        }
    }

    /// Adds values of a page.
    pub(super) fn add(&mut self, at: &PageAt, data: &[u8], wanted: &Wanted) -> Result<()> {
        self.read.values(at, data, wanted)?;
        match self.read.stock.bytes() {
            bytes if bytes > self.read.bytes_max => Err(Fault::TooLarge(bytes)),
            _ => Ok(()),
        }
    }

    /// All of them, as rows.
    pub(super) fn finish(self) -> Result<Slice<'static>> {
        let Read { stored, stock, .. } = self.read;
        let count = stock.len();
        Ok(Slice::new(count, None, stock.finish(stored.physical, &stored.values)?))
    }
}

/// Rows that are being read.
#[derive(Debug)]
struct Read<'a> {
    stored: &'a Stored,
    dictionary: Option<&'a Dictionary>,
    bytes_max: u64,
    stock: Stock,
    /// Rows so far that are no NULL; all if `None`.
    valid: Option<Vec<bool>>,
    keys: Vec<u32>,
}

impl Read<'_> {
    /// Reads `take` rows of a page after `skip`.
    fn page(&mut self, at: &PageAt, bytes: &[u8], skip: usize, take: usize) -> Result<()> {
        let before = self.stock.len();
        let span = (at.rows as usize, skip, take);
        let (validity, data) = split_levels(bytes, at.form, self.stored.most, span)?;
        let wanted = Wanted {
            rows: at.rows as usize,
            skip: validity.before,
            take: validity.count,
            bytes_max: self.bytes_max,
        };
        // A page of NULLs may have no values at all.
        if validity.count > 0 {
            self.values(at, data, &wanted)?;
        }
        if let Some(valid) = validity.valid {
            self.stock.spread(before, &valid);
            let all = self.valid.get_or_insert_with(|| vec![true; before]);
            all.extend(valid);
        } else if let Some(all) = &mut self.valid {
            all.resize(before + take, true);
        }
        match self.stock.bytes() {
            bytes if bytes > self.bytes_max => Err(Fault::TooLarge(bytes)),
            _ => Ok(()),
        }
    }

    /// Reads values of a page.
    fn values(&mut self, at: &PageAt, data: &[u8], wanted: &Wanted) -> Result<()> {
        match at.encoding {
            Encoding::Dictionary => self.places(data, wanted),
            encoding => self.stock.read(data, encoding, self.stored.physical, wanted),
        }
    }

    fn places(&mut self, data: &[u8], wanted: &Wanted) -> Result<()> {
        let Some(dictionary) = self.dictionary else {
            return Err(Fault::Damaged("places in a dictionary that is not there".to_owned()));
        };
        let (width, packed) = data
            .split_first()
            .ok_or_else(|| Fault::Damaged("places without their width".to_owned()))?;
        let mut numbers = Hybrid::new(packed, u32::from(*width))?;
        numbers.skip(wanted.skip)?;
        self.keys.clear();
        let (keys, before) = match &mut self.stock {
            Stock::Keys(keys) => {
                let before = keys.len();
                (keys, before)
            }
            _ => (&mut self.keys, 0),
        };
        numbers.read_to(wanted.take, keys)?;
        let most = keys[before..].iter().copied().max().unwrap_or(0) as usize;
        if most >= dictionary.len() {
            return Err(Fault::Damaged(format!(
                "place {most} in a dictionary of {} values",
                dictionary.len()
            )));
        }
        match &self.stock {
            Stock::Keys(_) => Ok(()),
            _ => self.stock.resolve(&self.keys, &dictionary.stock, self.bytes_max),
        }
    }
}
