//! A fragment: the typed columns of one chunk's rows, as the parse step leaves them.
//!
//! ```text
//!   column of few values     codes [3, 0, 0, 7, ...]  into a temporary dictionary, in order of
//!                            first appearance; NULL is 65,535
//!   column of many values    a plain page, encoded at once
//! ```
//!
//! A temporary dictionary lives for the fragments that one worker makes of one partition, not for one
//! fragment: a value is parsed once for 50 fragments. See decision 0002.

use std::sync::Arc;

use coload_page::{Page, SymbolEncoder};
use coload_types::{Physical, Plain, Values};

/// The provisional code of NULL.
pub const NULL_CODE: u16 = u16::MAX;
/// Most values in a temporary dictionary that the parse step fills; a column with more is plain.
pub const CODES_PROVISIONAL_MAX: usize = 1 << 15;

/// Bytes of a value in a temporary dictionary, besides those of text: the value, its code, and what finds it.
const VALUE_BYTES: usize = 96;

/// Most that a temporary dictionary may hold. A column with more is plain, whichever workers saw its values: a
/// partition's dictionary has the limit that each of theirs has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DictionaryLimit {
    /// Most values; a dictionary that is full refuses one more.
    pub values: usize,
    /// Bytes, with what finds the values.
    pub bytes: usize,
}

impl Default for DictionaryLimit {
    fn default() -> Self {
        DictionaryLimit { values: CODES_PROVISIONAL_MAX, bytes: usize::MAX }
    }
}

impl DictionaryLimit {
    /// The limit of a dictionary of so many bytes.
    pub fn of_bytes(bytes: usize) -> Self {
        DictionaryLimit { bytes, ..Self::default() }
    }

    /// Most values that there can be.
    pub fn values_max(&self) -> usize {
        self.values.min(self.bytes / VALUE_BYTES).max(1)
    }

    /// Whether so many values, of text so many bytes in all, are not more than may be held.
    pub fn holds(&self, values: usize, text_bytes: usize) -> bool {
        // A text stands in the dictionary, and as it was written in what finds it.
        let bytes = values.saturating_mul(VALUE_BYTES).saturating_add(text_bytes.saturating_mul(2));
        values <= self.values && bytes <= self.bytes
    }

    /// The share of what may be held that so many values, of text so many bytes in all, take.
    pub fn fullness(&self, values: f64, text_bytes: f64) -> f64 {
        let bytes = values * VALUE_BYTES as f64 + text_bytes * 2.0;
        (values / self.values as f64).max(bytes / self.bytes as f64)
    }

    /// Whether the values are not more than may be held.
    pub fn holds_all(&self, values: &Values) -> bool {
        self.holds(values.len(), text_bytes(values))
    }
}

/// Bytes of texts; 0 of numbers.
pub fn text_bytes(values: &Values) -> usize {
    match values {
        Values::Bytes(strings) => strings.bytes.len(),
        Values::Int(_) | Values::Wide(_) => 0,
    }
}

/// The distinct values of one column in the fragments of one worker, in order of first appearance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemporaryDictionary {
    /// The value of each provisional code.
    pub values: Values,
    /// Whether some value may stand in no row that was kept: a reject's, or a chunk's that was
    /// parsed again.
    pub stale: bool,
}

impl TemporaryDictionary {
    /// A dictionary without values.
    pub fn empty(physical: Physical) -> Self {
        TemporaryDictionary { values: Values::empty(physical), stale: false }
    }

    /// Bytes of its values.
    pub fn bytes(&self) -> usize {
        self.values.bytes()
    }
}

/// Provisional codes of a fragment's rows, in as few bytes as they need: a partition's fragments
/// wait in memory for the compress step.
///
/// Where rows come in groups a code stands for a run of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvisionalCodes {
    codes: Codes,
    rows: u32,
    /// Rows of each code, unless there is one for each.
    lengths: Option<Vec<u16>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Codes {
    /// Codes below 255, which is NULL.
    Narrow(Vec<u8>),
    /// Codes of 16 bits, and [`NULL_CODE`].
    Wide(Vec<u16>),
}

impl Codes {
    /// Keeps codes of a dictionary of `distinct` values.
    fn new(codes: &[u16], distinct: usize) -> Self {
        match distinct <= usize::from(u8::MAX) {
            // NULL becomes 255.
            true => Codes::Narrow(codes.iter().map(|c| *c as u8).collect()),
            false => Codes::Wide(codes.to_vec()),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Codes::Narrow(codes) => codes.len(),
            Codes::Wide(codes) => codes.len() * 2,
        }
    }
}

impl ProvisionalCodes {
    /// Keeps a code for each row, of a dictionary of `distinct` values.
    pub fn new(codes: &[u16], distinct: usize) -> Self {
        let rows = codes.len() as u32;
        ProvisionalCodes { codes: Codes::new(codes, distinct), rows, lengths: None }
    }

    /// Keeps a code for each run of rows; runs next to each other differ. `starts` are their first
    /// rows, of `rows` in all.
    ///
    /// # Panics
    /// When the first run does not start at row 0, or starts do not rise.
    pub fn of_runs(codes: &[u16], starts: &[u32], rows: u32, distinct: usize) -> Self {
        assert!(starts.first().is_none_or(|s| *s == 0));
        let ends = starts.iter().skip(1).chain([&rows]);
        let lengths = starts.iter().zip(ends).map(|(s, e)| e - s);
        let narrow = distinct <= usize::from(u8::MAX);
        let saves = codes.len() * if narrow { 3 } else { 2 } < rows as usize;
        if saves && lengths.clone().all(|l| l <= u32::from(u16::MAX)) {
            let lengths = Some(lengths.map(|l| l as u16).collect());
            return ProvisionalCodes { codes: Codes::new(codes, distinct), rows, lengths };
        }
        let mut each = Vec::with_capacity(rows as usize);
        for (code, length) in codes.iter().zip(lengths) {
            each.extend(std::iter::repeat_n(*code, length as usize));
        }
        Self::new(&each, distinct)
    }

    /// Number of rows, NULLs among them.
    pub fn len(&self) -> usize {
        self.rows as usize
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the codes take.
    pub fn bytes(&self) -> usize {
        self.codes.bytes() + self.lengths.as_ref().map_or(0, |l| l.len() * 2)
    }

    /// The rows of each code, unless there is a code for each row.
    pub fn lengths(&self) -> Option<&[u16]> {
        self.lengths.as_deref()
    }

    /// The codes, each of a row or a run; `scratch` holds them if they are kept in another form.
    pub fn codes<'a>(&'a self, scratch: &'a mut Vec<u16>) -> &'a [u16] {
        match &self.codes {
            Codes::Wide(codes) => codes,
            Codes::Narrow(codes) => {
                const NULL: u16 = u8::MAX as u16;
                scratch.clear();
                let widen = |c: &u8| match u16::from(*c) {
                    NULL => NULL_CODE,
                    code => code,
                };
                scratch.extend(codes.iter().map(widen));
                scratch
            }
        }
    }

    /// The code of each row.
    pub fn of_rows<'a>(&'a self, scratch: &'a mut Vec<u16>) -> &'a [u16] {
        let Some(lengths) = &self.lengths else { return self.codes(scratch) };
        let mut codes = Vec::new();
        let runs = self.codes(&mut codes).iter().zip(lengths);
        scratch.clear();
        scratch.reserve(self.len());
        runs.for_each(|(code, length)| {
            scratch.extend(std::iter::repeat_n(*code, usize::from(*length)));
        });
        scratch
    }
}

/// One column of a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FragmentColumn {
    /// Provisional codes, and what they stand for.
    Codes {
        /// A code for each row.
        codes: ProvisionalCodes,
        /// Which of the partition's temporary dictionaries they belong to.
        dictionary: u32,
        /// Whether any row is NULL.
        nulls: bool,
    },
    /// Values, encoded without a dictionary. A `Text` page with symbols belongs to the partition's
    /// symbol table of this column.
    Page(Page),
    /// Values as they are, which somebody else encodes.
    Plain(Plain),
}

impl FragmentColumn {
    /// Number of rows, NULLs among them.
    pub fn rows(&self) -> usize {
        match self {
            FragmentColumn::Codes { codes, .. } => codes.len(),
            FragmentColumn::Page(page) => page.rows as usize,
            FragmentColumn::Plain(plain) => plain.len(),
        }
    }

    /// Bytes of memory that the column takes.
    pub fn bytes(&self) -> usize {
        match self {
            FragmentColumn::Codes { codes, .. } => codes.bytes(),
            FragmentColumn::Page(page) => page.bytes.len(),
            FragmentColumn::Plain(plain) => plain.values.bytes(),
        }
    }
}

/// The typed columns of one chunk's rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fragment {
    /// Rows in each column.
    pub rows: u32,
    /// Columns in table order.
    pub columns: Vec<FragmentColumn>,
}

/// A page of a column of a fragment that needs no dictionary: nothing becomes of it any more.
#[derive(Debug)]
pub struct FinalPage {
    /// Column of the table.
    pub column: usize,
    /// The page, to which nothing of the partition is added any more.
    pub page: Page,
    /// The symbols of a page of text.
    pub symbols: Option<Arc<SymbolEncoder>>,
}
