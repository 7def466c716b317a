//! Micro-benchmarks of the steps on the first megabytes of a file: the least CPU time of many runs,
//! which other work on the machine hardly moves.

use std::path::Path;

use coload_ddl::Schema;
use coload_ddl::parse_create_table;
use coload_source::{
    ChunkParser, ColumnParser, ColumnPlan, ColumnRules, Dialect, LastWindow, Lexicon, RecordRules,
    Sample, TEXT_PADDING, Trailing, TypeOrigin, Window, plan_column, tokenise,
};
use coload_transform::{
    DictionaryLimit, DictionaryPolicy, Fragment, TemporaryDictionary, compress_column,
    merge_column, sort_temporaries,
};
use coload_types::Physical;

/// CPU time of this thread: other work on the machine takes turns with it.
fn thread_cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Text that is looked at.
const BYTES: usize = 64 << 20;
/// Text parsed at once, as in a load.
const WINDOW: usize = 384 << 10;

/// What one step of a load took.
pub struct Step {
    /// Name of the step, as the table prints it.
    pub name: &'static str,
    /// Least CPU seconds of the runs.
    pub seconds: f64,
    /// Input bytes of the text.
    pub bytes: usize,
    /// Fields of the text.
    pub fields: usize,
}

/// Measures each step `repeat` times on the start of a file.
pub fn run(file: &Path, schema: &Path, repeat: usize) -> Result<Vec<Step>, String> {
    let text = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let sql = std::fs::read_to_string(schema).map_err(|e| format!("{}: {e}", schema.display()))?;
    let (_, schema) = parse_create_table(&sql).map_err(|e| e.to_string())?;
    let mut end = text.len().min(BYTES);
    while end > 0 && text[end - 1] != b'\n' {
        end -= 1;
    }
    let mut padded = vec![b'\n'];
    padded.extend_from_slice(&text[..end]);
    padded.extend([0; TEXT_PADDING]);
    let lab = Lab::new(&padded, end, &schema);
    let mut steps = vec![lab.measure("tokenise", repeat, || lab.tokenise())];
    steps.push(lab.measure("tokenise and convert", repeat, || {
        lab.parse();
    }));
    for (name, kind) in [("codes", 0), ("numbers", 1), ("text", 2)] {
        let columns = lab.columns_of(kind);
        if columns.is_empty() {
            continue;
        }
        let mut step = lab.measure(name, repeat, || {
            lab.parse_columns(&columns);
        });
        step.fields = columns.len() * lab.rows;
        steps.push(step);
    }
    let codes = lab.columns_of(0);
    let mut known = lab.chunk_parser(&codes);
    lab.parse_with(&mut known);
    let mut step = lab.measure("tokenise and known codes", repeat, || {
        lab.parse_with(&mut known);
    });
    step.fields = codes.len() * lab.rows;
    steps.push(step);
    let fragment = lab.parse();
    steps.push(lab.measure("sort", repeat, || lab.sort(&fragment)));
    steps.push(lab.measure("compress", repeat, || {
        lab.compress(&fragment);
    }));
    let parts = lab.compress(&fragment);
    steps.push(lab.measure("merge (2 partitions)", repeat, || {
        for (part, physical) in parts.iter().zip(&lab.physicals) {
            let merged = merge_column(vec![part.clone(), part.clone()], *physical);
            assert!(merged.is_ok());
        }
    }));
    Ok(steps)
}

struct Lab<'a> {
    text: &'a [u8],
    end: usize,
    rules: RecordRules,
    columns: Vec<ColumnRules>,
    plans: Vec<ColumnPlan>,
    physicals: Vec<Physical>,
    rows: usize,
}

impl<'a> Lab<'a> {
    fn new(text: &'a [u8], end: usize, schema: &Schema) -> Self {
        let dialect =
            Dialect { delimiter: b'|', trailing: Trailing::Delimiter, ..Dialect::default() };
        let rules = dialect.record_rules(schema.len());
        let columns: Vec<ColumnRules> = schema
            .columns()
            .iter()
            .enumerate()
            .map(|(field, c)| ColumnRules {
                field: Some(field),
                absent: None,
                origin: TypeOrigin::Declared,
                data_type: c.data_type,
                nullable: c.nullable,
                empties_are_null: false,
                fields: dialect.field_rules(),
            })
            .collect();
        let window = Window {
            text,
            start: 1,
            end: 1 + end.min(8 << 20),
            offset: 0,
            limit: usize::MAX,
            last: LastWindow::No,
        };
        let sample = Sample::new(&window, rules.clone());
        let plans = columns
            .iter()
            .enumerate()
            .map(|(i, c)| {
                plan_column(&sample.rows(), i, c.data_type, (DictionaryLimit::default(), None))
            })
            .collect();
        let physicals = columns.iter().map(|c| c.data_type.physical()).collect();
        let rows = text[1..1 + end].iter().filter(|b| **b == b'\n').count();
        Lab { text, end, rules, columns, plans, physicals, rows }
    }

    fn measure(&self, name: &'static str, repeat: usize, mut work: impl FnMut()) -> Step {
        let mut least = f64::MAX;
        for _ in 0..repeat {
            let started = thread_cpu_seconds();
            work();
            least = least.min(thread_cpu_seconds() - started);
        }
        Step { name, seconds: least, bytes: self.end, fields: self.rows * self.columns.len() }
    }

    fn tokenise(&self) {
        let mut ends = Vec::new();
        let mut at = 1;
        let mut newlines = 0;
        while at < 1 + self.end {
            let end = (at + WINDOW).min(1 + self.end);
            ends.clear();
            newlines += tokenise(self.text, at, end, self.rules.separators, &mut ends).newlines;
            at = end;
        }
        assert_eq!(newlines, self.rows);
    }

    fn columns_of(&self, kind: usize) -> Vec<usize> {
        let kind_of = |plan: &ColumnPlan| match plan {
            ColumnPlan::Codes => 0,
            ColumnPlan::Numbers { .. } => 1,
            _ => 2,
        };
        (0..self.plans.len()).filter(|i| kind_of(&self.plans[*i]) == kind).collect()
    }

    fn parser(&self, column: usize) -> ColumnParser {
        let rules = self.columns[column].clone();
        let lexicon = Lexicon::new(rules.data_type.physical());
        ColumnParser::new(rules, self.plans[column].clone(), lexicon)
    }

    fn windows(&self, mut each: impl FnMut(&Window<'_>) -> usize) {
        let mut at = 1;
        while at < 1 + self.end {
            at = each(&Window {
                text: self.text,
                start: at,
                end: (at + WINDOW).min(1 + self.end),
                offset: at as u64 - 1,
                limit: usize::MAX,
                last: LastWindow::No,
            });
        }
    }

    fn chunk_parser(&self, columns: &[usize]) -> ChunkParser {
        let parsers = columns.iter().map(|c| self.parser(*c)).collect();
        ChunkParser::new(self.rules.clone(), parsers, || 0)
    }

    fn parse_with(&self, parser: &mut ChunkParser) -> Fragment {
        self.windows(|window| parser.parse_window(window).end);
        assert!(parser.end_piece().0.is_empty());
        let fragment = match parser.finish(0) {
            Ok(fragment) => fragment,
            Err(e) => panic!("{e}"),
        };
        assert!(fragment.rows as usize == self.rows);
        fragment
    }

    fn parse(&self) -> (Fragment, Vec<TemporaryDictionary>) {
        let mut parser = self.chunk_parser(&Vec::from_iter(0..self.columns.len()));
        let fragment = self.parse_with(&mut parser);
        let columns = parser.columns_mut().drain(..);
        (fragment, columns.map(|c| c.into_lexicon().into_dictionary()).collect())
    }

    /// Converts some columns; the separators are found anew, so subtract `tokenise`.
    fn parse_columns(&self, columns: &[usize]) {
        let mut parsers: Vec<ColumnParser> = columns.iter().map(|c| self.parser(*c)).collect();
        let mut bad = Vec::new();
        self.windows(|window| {
            let mut ends = vec![window.start as u32 - 1];
            let seen =
                tokenise(window.text, window.start, window.end, self.rules.separators, &mut ends);
            let stride = self.rules.fields + 1;
            let count = (ends.len() - 1) / stride;
            ends.truncate(count * stride + 1);
            let rows = coload_source::Rows {
                text: window.text,
                ends: &ends,
                stride,
                count,
                fields: self.rules.fields,
            };
            for (parser, column) in parsers.iter_mut().zip(columns) {
                assert!(parser.parse(&rows, *column, &seen, &mut bad).is_ok());
            }
            ends[count * stride] as usize + 1
        });
        assert!(bad.is_empty());
    }

    fn sort(&self, parsed: &(Fragment, Vec<TemporaryDictionary>)) {
        for (i, column) in parsed.0.columns.iter().enumerate() {
            let dictionaries = std::slice::from_ref(&parsed.1[i]);
            let columns = std::slice::from_ref(column);
            assert!(
                sort_temporaries(
                    columns,
                    dictionaries,
                    self.physicals[i],
                    DictionaryLimit::default()
                )
                .is_ok()
            );
        }
    }

    fn compress(
        &self,
        parsed: &(Fragment, Vec<TemporaryDictionary>),
    ) -> Vec<coload_transform::PartitionColumn> {
        let columns = parsed.0.columns.iter().enumerate();
        columns
            .map(|(i, column)| {
                let dictionaries = std::slice::from_ref(&parsed.1[i]);
                let encoder = match &self.plans[i] {
                    ColumnPlan::Text { encoder, .. } => Some(&**encoder),
                    _ => None,
                };
                let sorted = sort_temporaries(
                    std::slice::from_ref(column),
                    dictionaries,
                    self.physicals[i],
                    DictionaryLimit::default(),
                );
                let compressed = sorted.and_then(|sorted| {
                    compress_column(
                        vec![column.clone()],
                        dictionaries,
                        sorted,
                        encoder,
                        self.physicals[i],
                        DictionaryPolicy::Auto,
                    )
                });
                match compressed {
                    Ok(column) => column,
                    Err(e) => panic!("{e}"),
                }
            })
            .collect()
    }
}
