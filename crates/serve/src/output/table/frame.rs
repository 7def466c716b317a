//! The frame of a table: how wide its columns are, and which of them fit.

use coload_types::Result;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

use super::super::cells::{NULL, Rows, framed, is_number, width};

/// The texts of a row.
pub(super) type Cells = Vec<String>;

/// Width to which columns of text are cut before whole columns are left out.
const NARROW: usize = 12;
/// Stands for what was cut.
const CUT: &str = "…";

/// Appends the texts of a batch's rows.
///
/// # Errors
/// `Invalid` when a column has no text form.
pub(super) fn cells_of(batch: &RecordBatch, cells: &mut Vec<Cells>) -> Result<()> {
    let mut rows = Rows::of(batch)?;
    for row in 0..batch.num_rows() {
        let texts = (0..rows.width()).map(|column| {
            Ok(rows.text(row, column)?.map_or_else(|| NULL.to_owned(), |text| framed(&text)))
        });
        cells.push(texts.collect::<Result<_>>()?);
    }
    Ok(())
}

/// A column of the frame: one of the answer, or those that are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Column { index: usize, width: usize, is_number: bool },
    LeftOut,
}

/// How a table is drawn.
#[derive(Debug)]
pub(super) struct Frame {
    names: Vec<String>,
    places: Vec<Place>,
    /// Whether values are cut to the width of their column.
    cuts: bool,
}

impl Frame {
    /// A frame around some rows that fits into `columns` of a terminal, if these are known.
    pub fn new(schema: &SchemaRef, rows: &[Cells], columns: Option<usize>) -> Self {
        let fields = schema.fields();
        let names: Vec<String> =
            fields.iter().map(|field| framed(field.name()).replace('\n', "\\n")).collect();
        let mut widths: Vec<usize> = names.iter().map(|name| width(name)).collect();
        for row in rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = cell.split('\n').map(width).fold(*widest, usize::max);
            }
        }
        let numbers: Vec<bool> = fields.iter().map(|f| is_number(f.data_type())).collect();
        let shown = match columns {
            Some(columns) => fit(&mut widths, &numbers, columns),
            None => (0..widths.len()).collect(),
        };
        let mut places = Vec::with_capacity(shown.len() + 1);
        for (position, index) in shown.iter().copied().enumerate() {
            if position > 0 && shown[position - 1] + 1 != index {
                places.push(Place::LeftOut);
            }
            places.push(Place::Column { index, width: widths[index], is_number: numbers[index] });
        }
        Frame { names, places, cuts: columns.is_some() }
    }

    /// Columns of the answer that are shown.
    pub fn shown_columns(&self) -> usize {
        self.places.iter().filter(|place| **place != Place::LeftOut).count()
    }

    /// A line between rows.
    pub fn rule(&self) -> String {
        let mut line = String::from("+");
        for place in &self.places {
            let width = match place {
                Place::Column { width, .. } => *width,
                Place::LeftOut => 1,
            };
            line.push_str(&"-".repeat(width + 2));
            line.push('+');
        }
        line + "\n"
    }

    /// The lines above the rows.
    pub fn head(&self) -> String {
        let mut text = self.rule();
        self.push_row(&self.names, &mut text);
        text + &self.rule()
    }

    /// The line for rows that are not shown.
    pub fn gap(&self) -> String {
        let mut text = String::new();
        let dots = vec![CUT.to_owned(); self.names.len()];
        self.push_row(&dots, &mut text);
        text
    }

    /// Appends the lines of a row: as many as its value of most lines has.
    pub fn push_row(&self, cells: &[String], text: &mut String) {
        let lines = |place: &Place| match place {
            Place::Column { index, .. } => cells[*index].matches('\n').count() + 1,
            Place::LeftOut => 1,
        };
        let height = self.places.iter().map(lines).max().unwrap_or(1);
        for line in 0..height {
            text.push('|');
            for place in &self.places {
                match place {
                    Place::LeftOut => text.push_str(&format!(" {CUT} |")),
                    Place::Column { index, width, is_number } => {
                        let part = cells[*index].split('\n').nth(line).unwrap_or_default();
                        self.push_cell(part, *width, *is_number, text);
                    }
                }
            }
            text.push('\n');
        }
    }

    fn push_cell(&self, part: &str, columns: usize, is_number: bool, text: &mut String) {
        let cut;
        let part = match self.cuts && width(part) > columns {
            true => {
                cut = cut_to(part, columns);
                &cut
            }
            false => part,
        };
        let blank = " ".repeat(columns.saturating_sub(width(part)));
        match is_number {
            true => text.extend([" ", &blank, part, " |"]),
            false => text.extend([" ", part, &blank, " |"]),
        }
    }
}

/// The start of a line that takes so many columns, and a sign that it goes on.
fn cut_to(line: &str, columns: usize) -> String {
    let mut cut = String::new();
    let mut used = width(CUT);
    for character in line.chars() {
        let more = width(character.encode_utf8(&mut [0; 4]));
        if used + more > columns {
            break;
        }
        used += more;
        cut.push(character);
    }
    cut + CUT
}

/// Columns that a frame of these widths takes.
fn framed_width(widths: impl Iterator<Item = usize>) -> usize {
    1 + widths.map(|width| width + 3).sum::<usize>()
}

/// Makes columns of text narrower until the frame fits, and chooses those that fit: the first and the last ones.
fn fit(widths: &mut [usize], numbers: &[bool], columns: usize) -> Vec<usize> {
    let over = |widths: &[usize]| framed_width(widths.iter().copied()).saturating_sub(columns);
    let texts = |i: &usize| !numbers[*i];
    let narrow: Vec<usize> = widths
        .iter()
        .enumerate()
        .map(|(i, width)| match numbers[i] {
            true => *width,
            false => (*width).min(NARROW),
        })
        .collect();
    match over(&narrow) {
        0 => {
            // None is wider than the terminal, so that these are few steps.
            widths.iter_mut().for_each(|width| *width = (*width).min(columns));
            while over(widths) > 0
                && let Some(widest) = (0..widths.len()).filter(texts).max_by_key(|i| widths[*i])
            {
                widths[widest] -= 1;
            }
        }
        _ => widths.copy_from_slice(&narrow),
    }
    if over(widths) == 0 {
        return (0..widths.len()).collect();
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    // The place for those that are left out.
    let mut used = framed_width(std::iter::once(1));
    let (mut from, mut to) = (0, widths.len());
    while from < to {
        let (index, side) = match left.len() <= right.len() {
            true => (from, &mut left),
            false => (to - 1, &mut right),
        };
        // The first column is shown in any case, cut to what there is.
        let room = columns.saturating_sub(used + 3);
        if widths[index] > room && !(from == 0 && to == widths.len()) {
            break;
        }
        widths[index] = widths[index].min(room.max(1));
        used += widths[index] + 3;
        side.push(index);
        if index == from { from += 1 } else { to -= 1 }
    }
    right.reverse();
    left.extend(right);
    left
}
