//! Files of Parquet, whose row groups are cut into chunks beforehand.
//!
//! ```text
//!   file      PAR1 | row group 1 | row group 2 | footer          row group: a column chunk for each column
//!   chunks          0     1     2  |   3   4   5                 rows of a row group, or several small row groups
//! ```
//!
//! A footer is at the end of its file, so that files are read, and no streams.

mod cache;
mod files;
mod input;
mod look;
mod prune;
mod reading;

use std::sync::{Arc, OnceLock};

use coload_input::{InputFile, Raw, RawFile, TextInput, Wanted};
use coload_types::{Error, Result};
use files::{GroupAt, IndexedFile, index_file, memory_bytes};
use reading::ParquetReading;

use crate::account::Account;
use crate::file_parts::{FileParts, PartKind};
use crate::format::{Format, InputBounds, Leg, Position};
use crate::hooks::{PartsRead, RowGroupsRead};
use crate::request::LoadRequest;
use crate::resources::Resources;
use crate::spool::Spool;
use crate::typed::{Asked, Chunks, Rows, cutting};

pub use look::{look_at_parquet, refuse_damaged_start, row_groups, rows_told};

/// Inputs of Parquet, looked at.
#[derive(Debug)]
pub struct Parquet {
    files: Vec<IndexedFile>,
    /// Row groups of all files, in order.
    groups: Vec<GroupAt>,
    /// How they are cut, once that is known.
    cut: OnceLock<CutGroups>,
}

/// How row groups are cut.
#[derive(Debug)]
struct CutGroups {
    /// Bytes of the rows of each in memory.
    bytes: Vec<u64>,
    chunks: Chunks,
}

impl Parquet {
    /// The rows of a chunk.
    fn rows_of(&self, chunk: usize) -> Vec<Rows> {
        let Some(cut) = self.cut.get() else { return Vec::new() };
        cut.chunks.rows(|group| self.groups[group].block(cut.bytes[group]), chunk)
    }
}

/// What is told of Parquet that does not come from a file.
fn not_a_file(name: &str) -> Error {
    Error::Invalid(format!(
        "{name} is Parquet, which is read from its end: from files that are not compressed as a whole, and neither from \
         pipes nor from compressed members of archives (write it to a file, and load that)"
    ))
}

/// Opens an input that is a file, as it is stored.
///
/// # Errors
/// `Invalid` when it is none, `Unavailable` when it cannot be read.
fn open_file(input: &InputFile) -> Result<Arc<RawFile>> {
    let opened = TextInput::open(input)?;
    let is_plain = opened.is_plain_file();
    match opened.raw {
        Raw::File { file, .. } if is_plain => Ok(file),
        _ => Err(not_a_file(&input.name)),
    }
}

/// Says which column chunks are read: others need not come from afar.
fn say_what_is_read(files: &[IndexedFile], groups: &[GroupAt]) {
    let mut groups = groups.iter().peekable();
    let (mut ranges, mut rows) = (Vec::new(), 0_u64);
    // Small row groups have a turn together.
    let (mut turn, mut bytes) = (0, 0_u64);
    for (number, file) in files.iter().enumerate() {
        // Parts of one file follow each other.
        if number > 0 && files[number - 1].file.name() != file.file.name() {
            ranges.clear();
            (rows, turn, bytes) = (0, 0, 0);
        }
        while let Some(group) = groups.next_if(|group| group.file as usize == number) {
            if !group.is_read() {
                continue;
            }
            let of_group: u64 = group.columns.iter().map(|at| at.bytes).sum();
            bytes = bytes.saturating_add(of_group);
            if bytes > TURNS_BYTES {
                (turn, bytes) = (rows, of_group);
            }
            rows = rows.saturating_add(group.rows);
            ranges.extend(wanted_of(group, turn));
        }
        file.file.will_read(ranges.iter().cloned());
    }
}

/// Bytes of row groups that have a turn together: all of them may be there at once. Larger ones are read in the order of rows.
const TURNS_BYTES: u64 = 8 << 20;
/// Bytes of a part of a column chunk that has a turn of its own, at least and at most.
const TURN_BYTES: (u64, u64) = (128 << 10, 1 << 20);

/// What is read of a row group, whose first rows have a turn: its column chunks side by side, for its first rows need
/// some of each.
fn wanted_of(group: &GroupAt, first: u64) -> impl Iterator<Item = Wanted> {
    let all: u64 = group.columns.iter().map(|at| at.bytes).sum();
    group.columns.iter().flat_map(move |at| {
        // As many rows as stand in so many bytes of all columns have a turn.
        let share = u128::from(at.bytes) * u128::from(TURNS_BYTES) / u128::from(all.max(1));
        let each = match all <= TURNS_BYTES {
            true => at.bytes.max(1),
            false => (share as u64).clamp(TURN_BYTES.0, TURN_BYTES.1),
        };
        let parts = at.bytes.div_ceil(each);
        (0..parts).map(move |part| {
            let start = part * each;
            let row = u128::from(group.rows) * u128::from(start) / u128::from(at.bytes.max(1));
            let range = at.start + start..at.start + (start + each).min(at.bytes);
            Wanted { range, turn: first.saturating_add(row as u64) }
        })
    })
}

impl Format for Parquet {
    type Reading<'a> = ParquetReading<'a>;

    fn open(
        request: &LoadRequest,
        resources: &Resources,
        _spool: Option<&Arc<Spool>>,
    ) -> Result<Self> {
        let asked = Asked { request, resources };
        if request.streams.is_some() || request.stream.is_some() {
            return Err(not_a_file(&request.inputs.name(0)));
        }
        let mut files: Vec<IndexedFile> = Vec::new();
        let mut groups = Vec::new();
        for (number, input) in request.inputs.iter().enumerate() {
            let file = open_file(&input)?;
            let mut indexed = index_file(file, number, asked, &mut groups)?;
            // Inputs of a load mostly have the same fields.
            if let Some(last) = files.last().filter(|last| last.fields == indexed.fields) {
                indexed.fields = Arc::clone(&last.fields);
            }
            files.push(indexed);
        }
        say_what_is_read(&files, &groups);
        Ok(Parquet { files, groups, cut: OnceLock::new() })
    }

    /// Dictionaries that are far away are looked at while the first row groups come.
    fn cut_into_chunks(&self, request: &LoadRequest, resources: &Resources) -> Result<()> {
        if self.cut.get().is_none() {
            let asked = Asked { request, resources };
            let of = |group: &GroupAt| memory_bytes(&self.files[group.file as usize], group, asked);
            let bytes: Vec<u64> = self.groups.iter().map(of).collect::<Result<_>>()?;
            let blocks = self.groups.iter().zip(&bytes).map(|(group, bytes)| group.block(*bytes));
            let chunks = Chunks::new(blocks, cutting(asked));
            self.cut.get_or_init(|| CutGroups { bytes, chunks });
        }
        Ok(())
    }

    fn read<'a>(&'a self, leg: Leg<'a>) -> ParquetReading<'a> {
        ParquetReading::new(self, leg)
    }

    fn chunks(&self) -> Option<usize> {
        Some(self.cut.get().map_or(0, |cut| cut.chunks.count()))
    }

    fn bounds(&self) -> Vec<InputBounds> {
        let of = |file: &IndexedFile| InputBounds {
            start: file.head,
            lines: 0,
            end: Some(file.end),
            part: (file.skipped > 0).then_some(file.end),
        };
        self.files.iter().map(of).collect()
    }

    fn stored_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.end - file.skipped).sum()
    }

    fn parts_read(&self) -> PartsRead {
        let mut parts = PartsRead::default();
        let mut groups = RowGroupsRead::default();
        for group in &self.groups {
            if !group.is_read() {
                groups.left_out += 1;
                continue;
            }
            groups.read += 1;
            parts.bytes += group.columns.iter().map(|column| column.bytes).sum::<u64>();
            if let Some(wanted) = &group.wanted {
                let rows: u64 = wanted.iter().map(|rows| rows.end - rows.start).sum();
                groups.rows_left_out += group.rows.saturating_sub(rows);
            }
        }
        PartsRead { row_groups: Some(groups), ..parts }
    }

    fn file_parts(&self) -> FileParts {
        let groups = self.groups.iter().filter(|group| group.is_read());
        let starts = groups.map(|group| (group.file, group.start, group.number));
        FileParts::new(PartKind::RowGroup, starts)
    }

    fn head_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.head - file.skipped).sum()
    }

    fn comes_from_afar(&self) -> bool {
        self.files.iter().any(|file| file.file.is_far())
    }

    /// Some of each column of a row group.
    fn together_bytes(&self) -> u64 {
        let largest = self.groups.iter().map(|group| group.stored()).max();
        largest.unwrap_or(0).min(2 * TURNS_BYTES)
    }

    fn bytes_before(&self, place: Position, _records: u64) -> u64 {
        let chunks = (0..place.chunks).flat_map(|chunk| self.rows_of(chunk));
        chunks.map(|rows| rows.span.end - rows.span.start).sum()
    }

    fn check_unchanged(&self) -> Result<()> {
        self.files.iter().try_for_each(|file| file.file.check_unchanged())
    }

    fn check_same(&self, before: &Self) -> Result<()> {
        let mut pairs = self.files.iter().zip(&before.files);
        pairs.try_for_each(|(now, before)| now.file.check_same(&before.file))
    }

    fn share(&self, account: &Account) -> f64 {
        match self.stored_bytes() {
            0 => 1.0,
            all => (account.text_bytes() as f64 / all as f64).min(1.0),
        }
    }
}
