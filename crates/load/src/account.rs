//! The account of a load: records read = rows loaded + rejects + those that a filter left out, for each
//! input.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use coload_input::Inputs;
use coload_source::{Mended, Reject, RejectColumns, RejectWriter, RejectedRecord, RejectedValue};
use coload_types::{DataType, Error, Place, Result};
use coload_wire::{FieldsByInput, PartIs, PartitionAccount, RejectLimit, Rejects};

use crate::file_parts::FileParts;
use crate::file_report::{FileCounts, FileReports};
use crate::format::{Arrival, Format, InputBounds, PieceSpan};
use crate::kinds::{RejectKind, RejectKinds};
use crate::output_file::{OutputFile, check_output};
use crate::report::REJECTS_KEPT_MAX;
use crate::request::LoadRequest;
use crate::starts::{first_record_at, records_before};
use crate::widen::{Way, Widening};

/// Bytes of a value or record that a report keeps.
pub const SHOWN_BYTES_MAX: usize = 64 << 10;

/// Where the text of an input ends when that is not known yet.
const END_UNKNOWN: u64 = u64::MAX;

/// How far the text of an input was read, and where its records end.
#[derive(Debug, Clone, Copy)]
struct Coverage {
    to: u64,
    end: u64,
    /// Lines before the piece that comes next.
    lines: u64,
}

/// Bytes of an input in an account.
pub const COUNTED_BYTES: usize = size_of::<Coverage>() + size_of::<FileCounts>();

/// Counts rows and rejects in the order of the input.
pub struct Account {
    inputs: Inputs,
    files: Vec<FileCounts>,
    /// What was mended, in inputs where something was: mostly in none.
    mended: BTreeMap<usize, Mended>,
    columns: Vec<(String, DataType)>,
    /// Where the columns stand in inputs whose places are cells; `None` where there are no such inputs.
    cells: Option<FieldsByInput>,
    /// Where the parts of files start that have some.
    file_parts: FileParts,
    /// What was read of each input so far, without a gap.
    read: Vec<Coverage>,
    /// Parts of inputs, where it is not all of one: where it starts, and before which byte its records start.
    parts: BTreeMap<usize, (u64, u64)>,
    /// Parts of inputs of which the lines before them are not known, until one is to be told.
    lines_unknown: BTreeSet<usize>,
    /// The load, if there are such.
    request: Option<Box<LoadRequest>>,
    limit: RejectLimit,
    rejects: u64,
    /// The first rejects.
    pub kept: Vec<Reject>,
    kinds: RejectKinds,
    writer: Option<RejectWriter<BufWriter<File>>>,
    /// The file of rejects, until the load is published.
    output: Option<OutputFile>,
    /// Where types may become wider.
    widening: Option<Widening>,
    /// Whether inputs need not be read to their ends.
    sampled: bool,
    /// Bytes of the records so far.
    record_bytes: u64,
    /// Rows of each chunk so far.
    chunk_rows: Vec<u32>,
    /// Inputs before the one that an earlier attempt read last.
    known_files: usize,
}

/// Where the columns stand in the inputs of a load, if these are sheets.
fn cells_of(request: &LoadRequest) -> Option<FieldsByInput> {
    let is_sheet = request.inputs.first().is_some_and(|first| first.is_sheet());
    is_sheet.then(|| request.fields_of_inputs())
}

impl Account {
    /// Nothing counted; makes the rejects file.
    ///
    /// # Errors
    /// `Invalid` when the rejects file cannot be made.
    pub fn new<F: Format>(request: &LoadRequest, source: &F, way: Way) -> Result<Self> {
        let bounds = source.bounds();
        let whole = |of: &InputBounds| {
            let (bytes, text_bytes) = match (of.part, of.end) {
                (Some(to), _) => (to - of.start, of.start),
                (None, end) => (end.unwrap_or(0), end.unwrap_or(0)),
            };
            FileCounts { bytes, text_bytes, ..FileCounts::default() }
        };
        let covered = |of: &InputBounds| Coverage {
            to: of.start,
            end: of.end.unwrap_or(END_UNKNOWN),
            lines: of.lines,
        };
        let part = |(number, of): (usize, &InputBounds)| Some((number, (of.start, of.part?)));
        let parts = bounds.iter().enumerate().filter_map(part).collect();
        let is_unknown = |(number, of): &(usize, &InputBounds)| {
            let begins_later = match request.part(*number) {
                PartIs::Whole => false,
                PartIs::Bytes { range, .. } => range.start > 0,
                PartIs::RowGroups(range) => range.start > 0,
            };
            begins_later && of.part.is_some()
        };
        let lines_unknown: BTreeSet<usize> =
            bounds.iter().enumerate().filter(is_unknown).map(|(number, _)| number).collect();
        let files = bounds.iter().map(whole).collect();
        let read = bounds.iter().map(covered).collect();
        let (output, writer) = match &request.rejects_file {
            None => (None, None),
            Some(path) => {
                check_output("--rejects", path, &request.inputs, &request.protected)?;
                let (output, writer) = open_rejects(path, request.reject_columns())?;
                (Some(output), Some(writer))
            }
        };
        Ok(Account {
            request: (!lines_unknown.is_empty()).then(|| Box::new(request.clone())),
            parts,
            lines_unknown,
            read,
            inputs: request.inputs.clone(),
            files,
            mended: BTreeMap::new(),
            columns: request.read_names(),
            cells: cells_of(request),
            file_parts: source.file_parts(),
            limit: request.max_rejects,
            rejects: 0,
            kept: Vec::new(),
            kinds: RejectKinds::default(),
            writer,
            output,
            widening: Widening::new(request, way),
            sampled: request.sample_bytes.is_some(),
            record_bytes: 0,
            chunk_rows: Vec::new(),
            known_files: 0,
        })
    }

    /// Goes on with wider types.
    pub fn begin_leg(&mut self, request: &LoadRequest) {
        self.columns = request.read_names();
        self.widening = Widening::new(request, Way::GoOn);
    }

    /// Adds a partition that an earlier attempt counted.
    ///
    /// # Errors
    /// As [`Self::add`]; `Corrupt` when it is not of these inputs.
    pub fn add_known(&mut self, known: &PartitionAccount) -> Result<()> {
        for part in &known.files {
            let index = part.file as usize;
            self.end_known(index.min(self.files.len()));
            let Some(file) = self.files.get_mut(index) else {
                return Err(Error::Corrupt(format!("input {index} of an earlier attempt")));
            };
            file.rows += part.rows;
            file.rejects += part.rejects;
            file.filtered += part.filtered;
            file.text_bytes = file.text_bytes.max(part.end);
            let read = &mut self.read[index];
            read.lines += part.lines;
            let before = std::mem::replace(&mut read.to, part.end);
            self.record_bytes += part.end.saturating_sub(before);
        }
        for reject in known.rejects.iter() {
            let mut reject = reject?;
            let is_file = |number: &usize| self.inputs.name(*number) == reject.place.file;
            // By what stands there, which is what is read now.
            if !self.file_parts.is_empty()
                && let Some(file) = (0..self.inputs.len()).find(is_file)
            {
                reject.part = self.file_parts.at(file, reject.place.byte);
            }
            self.keep_reject(reject)?;
        }
        Ok(())
    }

    /// Of inputs that come in order, an earlier attempt read those before one to their ends.
    fn end_known(&mut self, file: usize) {
        for number in self.known_files..file {
            let read = &mut self.read[number];
            if read.end == END_UNKNOWN && !self.parts.contains_key(&number) {
                read.end = read.to;
                self.files[number].bytes = self.inputs.bytes(number).unwrap_or(0);
            }
        }
        self.known_files = self.known_files.max(file);
    }

    /// Notes what came with a chunk before it is parsed: lines before the first records of inputs, and stored bytes.
    pub fn start_chunk(&mut self, arrival: &Arrival) {
        for (file, to, lines) in &arrival.begins {
            let read = &mut self.read[*file];
            (read.lines, read.to) = (*lines, *to);
        }
        self.end_inputs(&arrival.ends);
        self.add_bytes(&arrival.source_bytes);
    }

    /// Notes where inputs of a stream end.
    fn end_inputs(&mut self, ends: &[(usize, u64)]) {
        for (file, end) in ends {
            self.read[*file].end = *end;
        }
    }

    /// Adds stored bytes of inputs of a stream.
    fn add_bytes(&mut self, bytes: &[(usize, u64)]) {
        for (file, bytes) in bytes {
            self.files[*file].bytes += bytes;
        }
    }

    /// Adds a piece; pieces come in order. Its rejects are added to those that are sent, if they are.
    ///
    /// # Errors
    /// `Input` when a reject is over the limit, `Unavailable` when it cannot be written, `Corrupt` when
    /// it does not follow the piece before.
    pub fn add(&mut self, span: PieceSpan, mut sent: Option<&mut Rejects>) -> Result<()> {
        let to = std::mem::replace(&mut self.read[span.file].to, span.end);
        if span.start != to {
            return Err(self.gap(span.file, to, span.start));
        }
        let rejects = span.rejects.len() as u64;
        if rejects > 0 || span.mended != Mended::default() {
            self.find_lines(span.file)?;
        }
        for reject in span.rejects {
            let line = self.read[span.file].lines + reject.line + 1;
            if !self.widens(span.file, line, &reject) {
                self.reject(span.file, line, reject, sent.as_deref_mut())?;
            }
        }
        if self.widening.as_ref().is_some_and(Widening::stops) {
            return Err(widens());
        }
        let lines = &mut self.read[span.file].lines;
        if span.mended != Mended::default() {
            self.mended.entry(span.file).or_default().append(&span.mended, *lines + 1);
        }
        *lines += span.lines;
        self.record_bytes += span.end - span.start;
        let file = &mut self.files[span.file];
        file.rows += span.rows;
        file.rejects += rejects;
        file.filtered += span.filtered;
        // With what stands before the first record.
        file.text_bytes = file.text_bytes.max(span.end);
        Ok(())
    }

    /// Counts the lines before a part of an input, if they are not known.
    fn find_lines(&mut self, file: usize) -> Result<()> {
        let Some(request) = self.request.as_ref().filter(|_| self.lines_unknown.contains(&file))
        else {
            return Ok(());
        };
        let start = self.skipped(file);
        let lines = if let PartIs::RowGroups(range) = request.part(file) {
            records_before(request, file, range.start as usize)?
        } else {
            let at = first_record_at(request, file, start, None)?;
            if at.byte != start {
                let place = Place { file: self.inputs.name(file), line: 0, byte: start, field: 0 };
                let text =
                    format!("no record starts here; the first behind it is at byte {}", at.byte);
                return Err(Error::Input { place: Box::new(place), text });
            }
            at.lines
        };
        self.read[file].lines += lines;
        self.lines_unknown.remove(&file);
        Ok(())
    }

    /// Notes the records of a chunk that the types are too narrow for. The chunk is not added.
    pub fn note_unfit(&mut self, spans: &[PieceSpan]) {
        for span in spans {
            for reject in &span.rejects {
                self.widens(span.file, self.read[span.file].lines + reject.line + 1, reject);
            }
        }
    }

    /// Bytes of the records so far, without what stands before the first.
    pub fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    /// Adds the rows of the next chunks.
    pub fn add_chunks(&mut self, rows: &[u32]) {
        self.chunk_rows.extend_from_slice(rows);
    }

    /// Rows of each chunk so far.
    pub fn chunk_rows(&self) -> &[u32] {
        &self.chunk_rows
    }

    /// Where the file of rejects is, if there is one.
    pub fn output_path(&self) -> Option<&Path> {
        self.output.as_ref().map(OutputFile::written_path)
    }

    /// The file of rejects, to get its name when the load is published.
    pub fn take_output(&mut self) -> Option<OutputFile> {
        self.output.take()
    }

    /// Whether no record was rejected so far.
    pub fn is_clean(&self) -> bool {
        self.rejects == 0
    }

    /// Whether a record needs wider types.
    fn widens(&mut self, file: usize, line: u64, record: &RejectedRecord) -> bool {
        let Some(widening) = &mut self.widening else { return false };
        widening.note(file, record, || Place {
            file: self.inputs.name(file),
            line,
            byte: record.offset,
            field: 0,
        })
    }

    /// What became of each input so far.
    pub fn files(&self) -> &[FileCounts] {
        &self.files
    }

    /// Rejects by kind.
    pub fn take_kinds(&mut self) -> Vec<RejectKind> {
        std::mem::take(&mut self.kinds).into_kinds()
    }

    /// Whether the types lack something: what comes now is in vain.
    pub fn needs_wider(&self) -> bool {
        self.widening.as_ref().is_some_and(Widening::has_noted)
    }

    /// What the types lack, if they lack something.
    pub fn take_widening(&mut self) -> Option<Widening> {
        self.widening.take().filter(Widening::has_noted)
    }

    fn reject(
        &mut self,
        file: usize,
        line: u64,
        record: RejectedRecord,
        sent: Option<&mut Rejects>,
    ) -> Result<()> {
        let mut reject = Reject::new(record, &self.inputs.name(file), line, &self.columns);
        reject.part = self.file_parts.at(file, reject.place.byte);
        if let Some(cells) = &self.cells {
            let column = (reject.place.field as usize).checked_sub(1);
            let field = column.and_then(|column| *cells.of(file).of_column.get(column)?);
            let field = field.map(|field| field as u32 + 1);
            reject.place.file = self.inputs.at(file).place_name(line, field);
        }
        if let Some(sent) = sent {
            sent.push(&reject);
        }
        self.keep_reject(reject)
    }

    fn keep_reject(&mut self, reject: Reject) -> Result<()> {
        self.rejects += 1;
        self.kinds.add(&reject);
        if let (Some(writer), Some(output)) = (&mut self.writer, &self.output) {
            let written = writer.write(&reject);
            written.map_err(|e| Error::io("write rejects to", output.written_path(), &e))?;
        }
        if let RejectLimit::Count(limit) = self.limit
            && self.rejects > limit
        {
            return Err(match (reject.to_error(), limit) {
                (error, 0) => error,
                (Error::Input { place, text }, _) => Error::Input {
                    place,
                    text: format!("{text}; this reject is one over --max-rejects {limit}"),
                },
                (other, _) => other,
            });
        }
        if self.kept.len() < REJECTS_KEPT_MAX {
            self.kept.push(shown(reject));
        }
        Ok(())
    }

    /// Closes the account: what was read is what was stored and rejected.
    ///
    /// # Errors
    /// `Input` when too large a share was rejected, `Corrupt` when the numbers do not agree.
    pub fn finish(&mut self, stored: u64) -> Result<()> {
        if self.widening.as_ref().is_some_and(Widening::has_noted) {
            return Err(widens());
        }
        let rows: u64 = self.files.iter().map(|f| f.rows).sum();
        let records: u64 = self.files.iter().map(FileCounts::records).sum();
        let filtered: u64 = self.files.iter().map(|f| f.filtered).sum();
        if let RejectLimit::Percent(share) = self.limit
            && self.rejects as f64 > records as f64 * share / 100.0
            && let Some(first) = self.kept.first()
            && let Error::Input { place, text } = first.to_error()
        {
            let text = format!(
                "{text}; {} of {records} records were rejected, over --max-rejects {share}%",
                self.rejects
            );
            return Err(Error::Input { place, text });
        }
        if let (Some(writer), Some(output)) = (self.writer.take(), &self.output) {
            let fail = |e| Error::io("write rejects to", output.written_path(), &e);
            writer.finish().map(drop).map_err(fail)?;
        }
        for (file, read) in self.read.iter().enumerate() {
            let is_whole = match (self.parts.get(&file), read.end) {
                // The last record may go on behind a part.
                (Some((_, to)), END_UNKNOWN) => read.to >= *to,
                (_, end) => read.to == end,
            };
            if !is_whole && !self.sampled {
                return Err(self.gap(file, read.to, read.end));
            }
        }
        if rows != stored || records != rows + self.rejects + filtered {
            return Err(Error::Corrupt(format!(
                "the account does not agree: {records} records, {rows} rows parsed, {stored} stored, \
                 {} rejected, {filtered} filtered out; nothing was loaded",
                self.rejects
            )));
        }
        Ok(())
    }

    fn gap(&self, file: usize, read_to: u64, next: u64) -> Error {
        Error::Corrupt(format!(
            "the account does not agree: {} was read to byte {read_to}, and byte {next} is next; nothing \
             was loaded",
            self.inputs.name(file)
        ))
    }

    /// Stored bytes read of all inputs of a stream.
    pub fn stored_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Bytes of text read of all inputs, with what stands before their records.
    pub fn text_bytes(&self) -> u64 {
        let all: u64 = self.read.iter().map(|read| read.to).sum();
        all - self.parts.values().map(|(start, _)| start).sum::<u64>()
    }

    /// Bytes of an input before the part that is read.
    fn skipped(&self, file: usize) -> u64 {
        self.parts.get(&file).map_or(0, |(start, _)| *start)
    }

    /// What became of each input, and the first rejects.
    pub fn into_files(mut self) -> (FileReports, Vec<Reject>) {
        if self.sampled {
            for number in 0..self.files.len() {
                let read = self.read[number].to - self.skipped(number);
                self.files[number].bytes = self.files[number].bytes.min(read);
            }
        }
        (FileReports::new(self.inputs, self.files, self.mended), self.kept)
    }
}

/// A reject as a report has it: of a long record no more than anybody reads. The file of rejects has all of it.
fn shown(mut reject: Reject) -> Reject {
    let first = |text: &[u8]| text[..text.len().min(SHOWN_BYTES_MAX)].to_vec();
    if reject.raw.len().max(reject.value().len()) > SHOWN_BYTES_MAX {
        reject.value = RejectedValue::Apart(first(reject.value()));
        reject.raw = first(&reject.raw);
    }
    reject
}

/// Ends a pass; the next has wider types.
fn widens() -> Error {
    Error::Unavailable("a column needs a wider type than was inferred".to_owned())
}

/// Makes a file of rejects, which has its header.
///
/// # Errors
/// `Invalid` when it cannot be made.
pub fn open_rejects(
    path: &Path,
    columns: RejectColumns,
) -> Result<(OutputFile, RejectWriter<BufWriter<File>>)> {
    let (output, file) = OutputFile::create(path)?;
    let writer = RejectWriter::new(BufWriter::new(file), columns);
    Ok((output, writer.map_err(|e| Error::io("create rejects file", path, &e))?))
}
