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

use coload_format::page::Page;
use coload_format::{Physical, Plain, Values};

/// The provisional code of NULL.
pub const NULL_CODE: u16 = u16::MAX;
/// Most values in a temporary dictionary that the parse step fills; a column with more is plain.
pub const CODES_PROVISIONAL_MAX: usize = 1 << 15;

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
}

/// Provisional codes of a fragment's rows, in as many bytes as they need: a partition's fragments
/// wait in memory for the compress step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProvisionalCodes {
    /// Codes below 255, which is NULL.
    Narrow(Vec<u8>),
    /// Codes, and [`NULL_CODE`].
    Wide(Vec<u16>),
}

impl ProvisionalCodes {
    /// Keeps codes of a dictionary of `distinct` values.
    pub fn new(codes: &[u16], distinct: usize) -> Self {
        match distinct <= usize::from(u8::MAX) {
            // NULL becomes 255.
            true => ProvisionalCodes::Narrow(codes.iter().map(|c| *c as u8).collect()),
            false => ProvisionalCodes::Wide(codes.to_vec()),
        }
    }

    /// Rows.
    pub fn len(&self) -> usize {
        match self {
            ProvisionalCodes::Narrow(codes) => codes.len(),
            ProvisionalCodes::Wide(codes) => codes.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            ProvisionalCodes::Narrow(codes) => codes.len(),
            ProvisionalCodes::Wide(codes) => codes.len() * 2,
        }
    }

    /// The codes; `scratch` holds them if they are kept in another form.
    pub fn get<'a>(&'a self, scratch: &'a mut Vec<u16>) -> &'a [u16] {
        match self {
            ProvisionalCodes::Wide(codes) => codes,
            ProvisionalCodes::Narrow(codes) => {
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
}

/// One column of a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FragmentColumn {
    /// Provisional codes.
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
    /// Values, not encoded.
    Plain(Plain),
}

impl FragmentColumn {
    /// Rows.
    pub fn rows(&self) -> usize {
        match self {
            FragmentColumn::Codes { codes, .. } => codes.len(),
            FragmentColumn::Page(page) => page.rows as usize,
            FragmentColumn::Plain(plain) => plain.len(),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            FragmentColumn::Codes { codes, .. } => codes.bytes(),
            FragmentColumn::Page(page) => page.bytes.len(),
            FragmentColumn::Plain(plain) => match &plain.values {
                Values::Int(v) => v.len() * 8,
                Values::Wide(v) => v.len() * 16,
                Values::Bytes(v) => v.bytes.len() + v.ends.len() * 4,
            },
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
