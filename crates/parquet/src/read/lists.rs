//! Rows of lists and maps as texts of JSON, assembled from the column chunks of their leaves.
//!
//! ```text
//!   levels of lists   0 1 0 0       a row begins at 0
//!   levels            3 2 1 3       3 a value, 2 a NULL item, 1 an empty list
//!   values            a     b
//!   rows              ["a", null]  []  ["b"]
//! ```
//!
//! Values are written as [`JsonRows`] has them. A map is an object, whose keys are strings, in its order; a key that is there twice
//! comes twice.
//!
//! Invariant: levels of all leaves must tell the same lists. Memory: entries and values of the rows, and their texts, at most
//! `bytes_max` each.
//!
//! Source: Melnik et al., "Dremel: Interactive Analysis of Web-Scale Datasets", PVLDB 3(1), 2010, record assembly.

use std::ops::Range;
use std::sync::Arc;

use coload_arrow::{Brackets, Fault, JsonRows, Result, Slice};

use super::bytes::{cut_off, split_sized};
use super::head::Encoding;
use super::levels::{Hybrid, width_of};
use super::rows::{Dictionary, ListValues};
use super::schema::Stored;
use super::tree::{Items, Nested, Node};
use super::values::Wanted;
use super::walk::{ColumnMap, PageAt, PageForm};

/// A leaf that is read: its pages, its dictionary, and who has the bytes of a page.
pub struct LeafRead<'a> {
    /// Where the pages are.
    pub map: &'a ColumnMap,
    /// The dictionary.
    pub dictionary: Option<&'a Dictionary>,
    /// Gives the bytes of a page.
    pub page: &'a mut dyn FnMut(usize) -> Result<Arc<Vec<u8>>>,
}

/// Levels of a page, and the bytes of its values.
struct Levels<'a> {
    lists: Vec<u32>,
    levels: Vec<u32>,
    values: &'a [u8],
}

/// Splits a page of entries; the levels take `bytes_max` at most.
fn split<'a>(page: &'a [u8], at: &PageAt, stored: &Stored, bytes_max: u64) -> Result<Levels<'a>> {
    let entries = at.entries as usize;
    // Two levels of four bytes each, whatever their runs take in the page.
    match entries as u64 * 8 {
        bytes if bytes > bytes_max => return Err(Fault::TooLarge(bytes)),
        _ => {}
    }
    let read = |bytes: &[u8], most: u32| -> Result<Vec<u32>> {
        let mut levels = Vec::new();
        if most == 0 {
            levels.resize(entries, 0);
            return Ok(levels);
        }
        Hybrid::new(bytes, width_of(most))?.read_to(entries, &mut levels)?;
        match levels.iter().copied().max() {
            Some(level) if level > most => {
                Err(Fault::Damaged(format!("a level {level}, and {most} is the highest")))
            }
            _ => Ok(levels),
        }
    };
    let (lists, levels, values) = match at.form {
        PageForm::Two { levels, repetitions, .. } => {
            let (lists, rest) = page.split_at_checked(repetitions as usize).ok_or_else(cut_off)?;
            let (levels, values) = rest.split_at_checked(levels as usize).ok_or_else(cut_off)?;
            (lists, levels, values)
        }
        PageForm::One { levels: Encoding::Runs } | PageForm::Dictionary => {
            let (lists, rest) = split_sized(page)?;
            let (levels, values) = match stored.most {
                0 => (&[][..], rest),
                _ => split_sized(rest)?,
            };
            (lists, levels, values)
        }
        PageForm::One { levels } => {
            return Err(Fault::Unknown(format!(
                "levels of lists are {levels:?}, which is not read"
            )));
        }
    };
    Ok(Levels { lists: read(lists, stored.lists)?, levels: read(levels, stored.most)?, values })
}

/// How many rows begin in a page of a leaf in lists.
///
/// # Errors
/// `Damaged` when its levels are, `TooLarge` when they take more than they may.
pub fn rows_that_begin(stored: &Stored, at: &PageAt, page: &[u8], bytes_max: u64) -> Result<u32> {
    let levels = split(page, at, stored, bytes_max)?;
    if matches!(at.form, PageForm::Two { .. })
        && levels.lists.first().is_some_and(|level| *level > 0)
    {
        return Err(Fault::Damaged("a page that begins within a row".to_owned()));
    }
    Ok(levels.lists.iter().filter(|level| **level == 0).count() as u32)
}

/// Entries of a leaf, and its values.
struct Leaf {
    lists: Vec<u32>,
    levels: Vec<u32>,
    values: Slice<'static>,
    /// The entry and the value that come next.
    at: usize,
    value: usize,
}

/// Reads the entries of rows of a leaf.
fn read_leaf(
    stored: &Stored,
    read: &mut LeafRead<'_>,
    rows: &Range<u64>,
    bytes_max: u64,
) -> Result<Leaf> {
    let (mut lists, mut levels) = (Vec::new(), Vec::new());
    let mut values = ListValues::new(stored, read.dictionary, bytes_max);
    for number in read.map.pages_of_lists(rows) {
        let at = read.map.page(number);
        let page = (read.page)(number)?;
        let of = split(&page, at, stored, bytes_max)?;
        // Before the first row that begins in it stands the rest of the one before.
        let mut row = at.first_row.checked_sub(1);
        let (mut from, mut to) = (None, of.lists.len());
        for (entry, level) in of.lists.iter().enumerate() {
            if *level == 0 {
                row = Some(row.map_or(at.first_row, |row| row + 1));
            }
            match row {
                Some(row) if row >= rows.end => {
                    to = entry;
                    break;
                }
                Some(row) if row >= rows.start => {
                    from.get_or_insert(entry);
                }
                _ => {}
            }
        }
        let from = from.unwrap_or(to).min(to);
        let has_value = |level: &&u32| **level == stored.most;
        let skip = of.levels[..from].iter().filter(has_value).count();
        let take = of.levels[from..to].iter().filter(has_value).count();
        lists.extend_from_slice(&of.lists[from..to]);
        levels.extend_from_slice(&of.levels[from..to]);
        match (lists.len() as u64).saturating_mul(8) {
            bytes if bytes > bytes_max => return Err(Fault::TooLarge(bytes)),
            _ => {}
        }
        if take > 0 {
            let wanted = Wanted { rows: of.levels.len(), skip, take, bytes_max };
            values.add(at, of.values, &wanted)?;
        }
    }
    Ok(Leaf { lists, levels, values: values.finish()?, at: 0, value: 0 })
}

/// Reads rows of a list or a map: texts of JSON, NULL where it is. `leaves` are those of it, in their order.
///
/// # Errors
/// `Damaged` when pages contradict themselves or each other, `TooLarge` when the rows are more than they may be; those of pages.
pub fn read_lists(
    nested: &Nested,
    leaves: &mut [LeafRead<'_>],
    rows: Range<u64>,
    bytes_max: u64,
) -> Result<Slice<'static>> {
    let read = nested.leaves.iter().zip(leaves);
    let each_max = bytes_max / nested.leaves.len().max(1) as u64;
    let read = read.map(|(stored, leaf)| read_leaf(stored, leaf, &rows, each_max));
    let leaves = read.collect::<Result<Vec<Leaf>>>()?;
    let count = (rows.end - rows.start) as usize;
    let rows = JsonRows::new(count, bytes_max);
    let mut rest = Assembly { leaves, stored: &nested.leaves, rows };
    for _ in 0..count {
        rest.row(&nested.node)?;
    }
    rest.check_end()?;
    Ok(rest.rows.finish())
}

/// Rows that are being written.
struct Assembly<'a> {
    leaves: Vec<Leaf>,
    stored: &'a [Stored],
    rows: JsonRows,
}

fn differ() -> Fault {
    Fault::Damaged("the columns of a list do not have the same items".to_owned())
}

impl Assembly<'_> {
    /// Writes a row.
    fn row(&mut self, node: &Node) -> Result<()> {
        let (first, end) = node.leaves();
        for leaf in &self.leaves[first..end] {
            if leaf.lists.get(leaf.at) != Some(&0) {
                return Err(differ());
            }
        }
        self.write(node)?;
        self.rows.end_row()
    }

    /// Checks that all entries were rows.
    fn check_end(&self) -> Result<()> {
        match self.leaves.iter().all(|leaf| leaf.at == leaf.levels.len()) {
            true => Ok(()),
            false => Err(differ()),
        }
    }

    /// The level of the entry of a leaf that comes next.
    fn level(&self, leaf: usize) -> Result<u32> {
        let leaf = &self.leaves[leaf];
        leaf.levels.get(leaf.at).copied().ok_or_else(differ)
    }

    /// Whether something is there from a level on; all leaves within must say so.
    fn is_there(&self, (first, end): (usize, usize), level: u32) -> Result<bool> {
        let is_there = self.level(first)? >= level;
        for leaf in first + 1..end {
            if (self.level(leaf)? >= level) != is_there {
                return Err(differ());
            }
        }
        Ok(is_there)
    }

    /// Passes over an entry of each leaf, which has no value.
    fn pass(&mut self, (first, end): (usize, usize)) -> Result<()> {
        for number in first..end {
            let level = self.level(number)?;
            if level == self.stored[number].most {
                return Err(differ());
            }
            self.leaves[number].at += 1;
        }
        Ok(())
    }

    fn write(&mut self, node: &Node) -> Result<()> {
        match node {
            Node::Leaf(leaf) => self.write_value(*leaf),
            Node::Group { level, fields, leaves } => {
                if !self.is_there(*leaves, *level)? {
                    self.pass(*leaves)?;
                    self.rows.text.null();
                    return Ok(());
                }
                self.rows.text.open(Brackets::Curly);
                for (number, (name, field)) in fields.iter().enumerate() {
                    self.rows.text.next(number == 0)?;
                    self.rows.text.name(name);
                    self.write(field)?;
                }
                self.rows.text.close(Brackets::Curly);
                Ok(())
            }
            Node::List(items) => {
                self.write_items(items, Brackets::Square, &mut |rest, item| rest.write(item))
            }
            Node::Map { items, has_values } => {
                let has_values = *has_values;
                self.write_items(items, Brackets::Curly, &mut |rest, item| {
                    rest.write_entry(item, has_values)
                })
            }
        }
    }

    fn write_items(
        &mut self,
        items: &Items,
        brackets: Brackets,
        write: &mut dyn FnMut(&mut Self, &Node) -> Result<()>,
    ) -> Result<()> {
        let leaves = items.leaves;
        if !self.is_there(leaves, items.level)? {
            self.pass(leaves)?;
            self.rows.text.null();
            return Ok(());
        }
        self.rows.text.open(brackets);
        if !self.is_there(leaves, items.item_level)? {
            self.pass(leaves)?;
            self.rows.text.close(brackets);
            return Ok(());
        }
        let mut is_first = true;
        loop {
            self.rows.text.next(is_first)?;
            is_first = false;
            write(self, &items.item)?;
            let mut comes_again = None;
            for leaf in &self.leaves[leaves.0..leaves.1] {
                // Another item, or the end of this list and maybe of those around it.
                let again = match leaf.lists.get(leaf.at) {
                    Some(level) if *level > items.again => return Err(differ()),
                    Some(level) => *level == items.again,
                    None => false,
                };
                if *comes_again.get_or_insert(again) != again {
                    return Err(differ());
                }
            }
            if comes_again != Some(true) {
                break;
            }
        }
        self.rows.text.close(brackets);
        Ok(())
    }

    /// Writes an entry of a map; its key is a string, whatever it is.
    fn write_entry(&mut self, item: &Node, has_values: bool) -> Result<()> {
        let Node::Group { fields, .. } = item else { return Err(differ()) };
        let [(_, key), rest @ ..] = &fields[..] else { return Err(differ()) };
        let start = self.rows.text.begin_key();
        self.write(key)?;
        self.rows.text.end_key(start);
        match rest.first().filter(|_| has_values) {
            Some((_, value)) => self.write(value),
            None => {
                self.rows.text.null();
                Ok(())
            }
        }
    }

    fn write_value(&mut self, number: usize) -> Result<()> {
        let level = self.level(number)?;
        let stored = &self.stored[number];
        let leaf = &mut self.leaves[number];
        leaf.at += 1;
        if level < stored.most {
            self.rows.text.null();
            return Ok(());
        }
        let value = leaf.values.get(&stored.values, leaf.value);
        leaf.value += 1;
        let Some(value) = value else {
            return Err(Fault::Damaged("a value that is none of its type".to_owned()));
        };
        self.rows.text.value(value);
        Ok(())
    }
}
