//! From what a user asks to the request of a load: the first bytes of the first input decide what was
//! not given.

use std::sync::Arc;

use coload_ddl::{Key, KeyKind, Schema, create_table_sql};
use coload_input::{SheetChoice, sample_input};
use coload_load::{
    InputForm, LoadRequest, OpenedStream, RecordSize, RefusedColumn, RowProgram, sample_end,
};
#[cfg(feature = "sql")]
use coload_serve::plan_row_program;
use coload_source::{
    Dialect, GivenDialect, InputFile, InputSource, Inputs, JsonTells, LineEnd, PlaceOptions,
    SampleEnd, Sniffed, json_tells, sniff,
};
use coload_store::{LoadMode, Store};
use coload_types::{Column, Error, Place, Result, same_name};
#[cfg(feature = "sql")]
use coload_wire::RowSql;
use coload_wire::{ColumnFrom, FieldMap};

use crate::conflict_rule::ConflictRule;
use crate::folders::{Partitions, folder_columns};
use crate::heads::{check_comments, check_heads, for_several};
use crate::json_inputs::{check_flags, mean_record as mean_json_record, sniff_several};
use crate::json_mapping::TableMapping;
use crate::mapping::{Mapping, check_all_there, map_columns};
use crate::origin::Origin;
use crate::set_columns::{SetColumn, SetColumns, names_of};
use crate::several_tables::of_tables;
use crate::sheet_inputs::{of_sheets, tell_sheet};
use crate::typed_inputs::{SniffedInput, find_typed, sniff_typed};
use crate::union::{Joined, KnownInputs, join_by_name};

/// Bytes of the first input that are looked at, if nothing else is asked for.
pub const SAMPLE_BYTES: usize = 1 << 20;
/// Bytes of texts of small files that are kept, if nobody says otherwise.
pub const TEXT_ROOM: usize = 16 << 20;

/// Bytes of the other inputs that are looked at for their fields.
const HEADER_BYTES: usize = 64 << 10;

/// A load as a user asks for it, to be planned. What is `None` is decided from the first input.
#[derive(Debug, Clone)]
pub struct PlanRequest {
    /// What is loaded.
    pub origin: Origin,
    /// Where objects are, if some inputs are such.
    pub places: PlaceOptions,
    /// Which cells are read, if the inputs are books.
    pub sheets: SheetChoice,
    /// Table; the stem of the first file if not given.
    pub table: Option<String>,
    /// Columns; those of the table if it exists and is appended to, else inferred.
    pub schema: Option<Schema>,
    /// Key of a table that is made, by the names of its columns; that of `schema` if not given.
    pub key: Option<(KeyKind, Vec<String>)>,
    /// What is known of how the text is written.
    pub dialect: GivenDialect,
    /// Columns by name; by position if `None`.
    pub mapping: Option<Mapping>,
    /// Who reads the inputs: whether fields that nobody asks for may be of types that no column holds, and whether names count
    /// more than positions where files have names.
    pub reader: Reader,
    /// Tables that the same records of JSON are loaded into beside.
    pub beside: Vec<TableMapping>,
    /// How the inputs belong together.
    pub joined: Joined,
    /// Columns that are not read from the input.
    pub set: Vec<SetColumn>,
    /// What folders such as `year=2026` in the paths of inputs are.
    pub partitions: Partitions,
    /// A condition in SQL: rows for which it is true are loaded.
    pub filter: Option<String>,
    /// Expressions in SQL with their names: the columns that are loaded.
    pub select: Option<String>,
    /// What happens to rows that are there.
    pub mode: LoadMode,
    /// What happens to keys of a PRIMARY KEY that are there already.
    pub on_conflict: ConflictRule,
    /// COLUMN=VALUE of records that are no rows and take those with their keys away.
    pub delete_where: Option<String>,
    /// Bytes of the first input that are looked at; more than it has is all of it.
    pub sample_bytes: usize,
    /// Bytes of the texts of small files that are kept from when they are found until they are loaded: each is opened once
    /// then. A load counts them as memory.
    pub text_room: usize,
}

impl PlanRequest {
    /// Appends the inputs to the table named after the first; everything else is found out.
    pub fn new<S: Into<String>>(inputs: impl IntoIterator<Item = S>) -> Self {
        PlanRequest::of(Origin::Named(inputs.into_iter().map(Into::into).collect()))
    }

    /// Appends what an origin has.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use coload::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// use coload::{ArrowRows, Coload, Hooks, Origin, PlanRequest, Resources};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    /// let batch = RecordBatch::try_from_iter([("id", ids)])?;
    /// let rows = ArrowRows::new("my rows", batch.schema(), Box::new([Ok(batch)].into_iter()))?;
    /// let mut request = PlanRequest::of(Origin::Rows(rows.into()));
    /// request.table = Some("ids".to_owned());
    /// let store = Coload::create_or_open(folder.path().join("store"))?;
    /// let plan = store.plan(&request)?;
    /// let report = store.load(&plan.request, &Resources::default(), &Hooks::default())?;
    /// assert_eq!(report.rows(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn of(origin: Origin) -> Self {
        PlanRequest {
            origin,
            places: PlaceOptions::default(),
            sheets: SheetChoice::default(),
            table: None,
            schema: None,
            key: None,
            dialect: GivenDialect::default(),
            mapping: None,
            reader: Reader::Load,
            beside: Vec::new(),
            joined: Joined::ByPosition,
            set: Vec::new(),
            partitions: Partitions::AreFound,
            filter: None,
            select: None,
            mode: LoadMode::Append,
            on_conflict: ConflictRule::Error,
            delete_where: None,
            sample_bytes: SAMPLE_BYTES,
            text_room: TEXT_ROOM,
        }
    }
}

/// Who reads inputs whose records have types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// A load, which reads all fields: one of a type that no column holds is an error. Columns are taken as `mapping` says.
    Load,
    /// A statement, which reads some of them: such a field is an error when it is read. Columns are taken as `mapping` says.
    Statement,
    /// The same with columns that are fields of their names, all of which must be there.
    StatementByName,
}

impl Reader {
    /// What helps where inputs have different fields.
    pub(crate) fn joining(self) -> &'static str {
        match self {
            Reader::Load => {
                "join inputs by the names of their fields with --union-by-name, or load it by itself"
            }
            Reader::Statement | Reader::StatementByName => {
                "join inputs by the names of their fields with union_by_name => true"
            }
        }
    }
}

/// Where a plan's columns come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaOrigin {
    /// The request gives them.
    Given,
    /// The table that is there.
    Table,
    /// A sample of the first input.
    Inferred,
}

/// A load that can be run.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    /// What is loaded; may be changed before it is.
    pub request: LoadRequest,
    /// Where the columns come from.
    pub schema_from: SchemaOrigin,
    /// What was decided from the input, and why, a line each.
    pub evidence: Vec<String>,
}

/// What is found out about one input, the only one of a list, without a store, and what it is.
///
/// # Errors
/// As [`Coload::plan`](crate::Coload::plan).
pub fn sniff_input(
    inputs: &Inputs,
    given: &GivenDialect,
    sample_bytes: usize,
) -> Result<SniffedInput> {
    let Some(input) = inputs.first().filter(|_| inputs.len() == 1) else {
        return Err(Error::Invalid(format!("{} inputs are named: give one", inputs.len())));
    };
    let stream = OpenedStream::open(&input)?;
    let (sample, end) = sample(&input, stream.as_ref(), sample_bytes)?;
    match sniff_typed(&input, &sample, end, given)? {
        Some(found) => Ok(found),
        None => {
            if end == SampleEnd::Whole && is_blank(&sample) {
                check_may_be_blank(&input.name)?;
            }
            let given = of_sheets(inputs, given)?;
            let mut sniffed = sniff(&input.name, &sample, end, &given, None)?;
            tell_sheet(&input, &mut sniffed);
            check_is_json(&input.name, &given, &sniffed)?;
            if sniffed.dialect.json.is_some() {
                check_flags(&input.name, &given)?;
            }
            Ok(SniffedInput { sniffed, form: InputForm::Text, readable: None })
        }
    }
}

/// Plans a load into `store`, or into one that is not there yet; `None` when all inputs are empty, and
/// nothing else tells the columns.
pub(crate) fn plan(store: Option<&Store>, request: &PlanRequest) -> Result<Option<LoadPlan>> {
    let known = |table: &str| {
        let Some(store) = store else { return Ok(None) };
        Ok(store.snapshot()?.table(table).map(|t| t.schema.clone()))
    };
    let (main, beside) = of_tables(request)?;
    let Some(mut plan) = plan_with(&main, known)? else { return Ok(None) };
    for request in beside {
        if request.table.as_ref().is_some_and(|table| *table == plan.request.table) {
            return Err(Error::Invalid(format!(
                "--mapping: table {} is there twice: --table gives the first another name",
                plan.request.table
            )));
        }
        let Some(beside) = plan_with(&request, known)? else { continue };
        if beside.schema_from == SchemaOrigin::Inferred {
            let columns = create_table_sql(&beside.request.table, &beside.request.schema);
            plan.evidence.push(format!(
                "beside, {}",
                columns.split_whitespace().collect::<Vec<_>>().join(" ")
            ));
        }
        plan.request.beside.push(beside.request);
    }
    Ok(Some(plan))
}

/// Plans a load into a table that lies elsewhere; `known` tells its columns, if there is one. `None` when
/// all inputs are empty, and nothing else tells the columns.
///
/// # Errors
/// As [`Coload::plan`](crate::Coload::plan), and those of `known`.
pub fn plan_with(
    request: &PlanRequest,
    known: impl Fn(&str) -> Result<Option<Schema>>,
) -> Result<Option<LoadPlan>> {
    if let Some(TableMapping { table, .. }) = request.beside.first() {
        return Err(Error::Invalid(format!(
            "--mapping has table {table} beside the first: several tables are loaded together into a store of this machine; load \
             each by itself elsewhere, with its part of the mapping"
        )));
    }
    let inputs = request.origin.inputs(&request.places, &request.sheets, request.text_room)?;
    let Some(first) = inputs.first() else {
        return Err(Error::Invalid("no input: name a file, a glob, or -".to_owned()));
    };
    let table = request.table.clone().unwrap_or_else(|| first.table_name());
    let (mut schema, mut schema_from) = known_schema(&known, request, &table)?;
    if let Some(schema) = &schema {
        check_types(&request.dialect.columns, schema, &table)?;
    }
    let stream = match inputs.len() {
        1 => OpenedStream::open(&first)?,
        // The load refuses a stream among other inputs, and says so.
        _ => None,
    };
    let First { input, sample, end, tells } =
        first_telling(&inputs, stream.as_ref(), request.sample_bytes, &request.dialect)?;
    if schema.is_none() && tells == Tells::NoRecord {
        // A table whose rows are replaced by none keeps its columns.
        schema = match request.mode {
            LoadMode::Replace => known(&table)?,
            LoadMode::Append | LoadMode::Create => None,
        };
        if schema.is_none() {
            return Ok(None);
        }
        schema_from = SchemaOrigin::Table;
    }
    let began_us = coload_threads::epoch_us();
    let folders = folder_columns(request, &inputs, schema.as_ref())?;
    let wanted = [&request.set[..], &folders].concat();
    let mut set = SetColumns::find(&wanted, schema.as_ref(), inputs.names(), began_us)?;
    let to_read = match &request.select {
        None => schema.as_ref().map(|schema| set.left(schema)).transpose()?,
        // They are made of what the input has.
        Some(_) => None,
    };
    let by_position = to_read.as_ref().filter(|_| request.mapping.is_none());
    let by_position = by_position.filter(|_| request.joined == Joined::ByPosition);
    let mut given = for_several(&inputs, &of_sheets(&inputs, &request.dialect)?);
    given.columns_are_given = schema_from == SchemaOrigin::Given;
    // What is given of columns that another input has is no matter of the first.
    let of_first = match request.joined {
        Joined::ByPosition => given.clone(),
        Joined::ByName => GivenDialect { columns: Vec::new(), ..given.clone() },
    };
    let first = (&input, &sample[..], end);
    let by_position_typed = by_position.filter(|_| request.reader != Reader::StatementByName);
    let typed = find_typed(&inputs, request, first, by_position_typed, to_read.as_ref())?;
    let name = input.name.as_str();
    let form = typed.as_ref().map_or(InputForm::Text, |found| found.form);
    let (mut refused, mut typed_union) = (Vec::new(), None);
    let (mut sniffed, record_bytes) = match typed {
        Some(found) => {
            (refused, typed_union) = (found.refused, found.union);
            (found.sniffed, found.record_bytes)
        }
        None => {
            check_blank_among(&inputs, name)?;
            let sniffed = sniff(name, &sample, end, &of_first, by_position)?;
            let sniffed = match sniffed.dialect.json {
                Some(_) => {
                    let first = (name, &sample[..], end);
                    let schema = to_read.as_ref().filter(|_| request.mapping.is_none());
                    let by = (&request.dialect, request.sample_bytes);
                    sniff_several(&inputs, first, by, schema, sniffed)?
                }
                None => sniffed,
            };
            let mut sniffed = sniffed;
            tell_sheet(&input, &mut sniffed);
            check_comments(&inputs, name, &sniffed, &given)?;
            let mean = mean_json_record(&sample, &sniffed.dialect);
            let mean = mean.unwrap_or_else(|| mean_record(&sample, &sniffed.dialect));
            (sniffed, Some(mean))
        }
    };
    check_is_json(name, &request.dialect, &sniffed)?;
    let mut fields_by_input = None;
    // Fields that have names of their own wherever they stand.
    let has_own_names = form != InputForm::Text || sniffed.dialect.json.is_some();
    let is_by_name = form != InputForm::Text && request.reader == Reader::StatementByName;
    let by_name = Mapping::default();
    let mapping = match (&request.mapping, is_by_name, &to_read) {
        (None, true, Some(columns)) => {
            check_all_there(name, &sniffed.schema, columns)?;
            Some(&by_name)
        }
        (mapping, ..) => mapping.as_ref(),
    };
    let fields = match (mapping, request.joined) {
        (mapping, _) if let Some(union) = typed_union => {
            let (joined, of_column) = union.fields(name, (mapping, to_read), &mut sniffed)?;
            refused = refused_columns(refused, &of_column);
            fields_by_input = Some(Arc::new(joined));
            None
        }
        (None, _) if has_own_names => without_other_tables(&sniffed),
        (Some(mapping), _) if has_own_names => map_columns(name, mapping, to_read, &mut sniffed)?,
        (mapping, Joined::ByName) => {
            let first = (name, &sample[..], end);
            let sample_bytes = request.sample_bytes;
            let all = KnownInputs { all: &inputs, first, given: &given, sample_bytes };
            let joined = join_by_name(all, mapping, to_read, &mut sniffed)?;
            fields_by_input = Some(Arc::new(joined));
            None
        }
        (None, Joined::ByPosition) => {
            check_heads(&inputs, (name, &sample), &sniffed, &given)?;
            None
        }
        (Some(mapping), Joined::ByPosition) => {
            check_heads(&inputs, (name, &sample), &sniffed, &given)?;
            check_fields(&inputs, name, &sniffed, request, &given)?;
            map_columns(name, mapping, to_read, &mut sniffed)?
        }
    };
    let read = sniffed.schema;
    let program = row_program(request, &read, schema.as_ref(), began_us)?;
    let made = program.as_ref().map_or(&read, |program| program.schema()).clone();
    if request.partitions == Partitions::AreFound {
        set.leave_to_fields(&folders, &made);
        sniffed.evidence.extend(set.told(&folders));
    }
    if request.select.is_some() {
        let lacks = set.lacking(name, schema.as_ref(), &made)?;
        sniffed.evidence.extend(lacks);
    }
    let (schema, derivation) = set.derive(schema, made, read, program.is_some())?;
    let mut load = LoadRequest::new(inputs.clone(), table, schema, sniffed.dialect);
    load.derivation = derivation;
    load.program = program;
    load.began_us = began_us;
    load.fields = fields;
    load.fields_by_input = fields_by_input;
    load.refused = match &load.fields {
        Some(map) => refused_columns(refused, &map.of_column),
        None => refused,
    };
    load.form = form;
    load.record = Some(RecordSize::new(&load, record_bytes));
    load.mode = request.mode;
    load.stream = stream;
    load.source = request.origin.rows().cloned();
    let inferred = schema_from == SchemaOrigin::Inferred || request.select.is_some();
    load.inferred = (inferred && !sniffed.forms.is_empty()).then_some(sniffed.forms);
    set_key(&mut load, request)?;
    load.on_conflict = request.on_conflict.in_table(&load.table, &load.schema)?;
    let delete_where = request.delete_where.as_deref();
    load.delete_where = delete_where.map(|text| deletes(text, &load)).transpose()?;
    Ok(Some(LoadPlan { request: load, schema_from, evidence: sniffed.evidence }))
}

/// Of fields that are refused the columns that they are, if they are any.
fn refused_columns(fields: Vec<RefusedColumn>, of_column: &[usize]) -> Vec<RefusedColumn> {
    let of = |(column, field): (usize, &usize)| {
        let refused = fields.iter().find(|refused| refused.column == *field)?;
        Some(RefusedColumn { column, ..refused.clone() })
    };
    of_column.iter().enumerate().filter_map(of).collect()
}

/// The fields of the columns, where there are more, which are columns of other tables.
fn without_other_tables(sniffed: &Sniffed) -> Option<FieldMap> {
    let count = sniffed.dialect.json.as_ref()?.keys.paths().len();
    let columns = sniffed.schema.len();
    (count > columns).then(|| FieldMap { count, of_column: (0..columns).collect() })
}

/// Reads COLUMN=VALUE of records that delete.
fn deletes(text: &str, load: &LoadRequest) -> Result<(usize, String)> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(Error::Invalid(format!("--delete-where {text:?} is not COLUMN=VALUE")));
    };
    match load.schema.position(name.trim()) {
        Some(column) => Ok((column, value.to_owned())),
        None => {
            let names: Vec<&str> = load.schema.columns().iter().map(|c| c.name.as_str()).collect();
            Err(Error::Invalid(format!(
                "--delete-where {text}: table {} has no such column (it has {})",
                load.table,
                names.join(", ")
            )))
        }
    }
}

/// Refuses what says where values of JSON are of other inputs.
fn check_is_json(name: &str, given: &GivenDialect, sniffed: &Sniffed) -> Result<()> {
    let flag = match (&given.unnest, &given.mapping) {
        (Some(_), _) => "--unnest",
        (None, Some(_)) => "--mapping",
        (None, None) => return Ok(()),
    };
    match sniffed.dialect.json {
        Some(_) => Ok(()),
        None => Err(Error::Invalid(format!(
            "{flag}: {name} is not JSON, whose values have paths: leave it out"
        ))),
    }
}

/// Gives the table the key that is asked for. Its columns are NOT NULL then, as they are read.
fn set_key(load: &mut LoadRequest, request: &PlanRequest) -> Result<()> {
    let key = match (&request.key, load.schema.key()) {
        (Some((kind, _)), Some(given)) => {
            return Err(Error::Invalid(format!(
                "a table has one key, which its rows are ordered by: {} beside {}",
                kind.sql_name(),
                given.sql(load.schema.columns())
            )));
        }
        (Some((kind, names)), None) => Key::of_names(*kind, names, load.schema.columns())?,
        (None, Some(given)) => given.clone(),
        (None, None) => return Ok(()),
    };
    load.schema = load.schema.clone().with_key(Some(key.clone()))?;
    if let Some(derivation) = &mut load.derivation
        && load.program.is_none()
    {
        let mut read = derivation.read.columns().to_vec();
        for column in key.columns() {
            if let ColumnFrom::Read(from) = derivation.columns[*column] {
                read[from].nullable &= load.schema.columns()[*column].nullable;
            }
        }
        derivation.read = Schema::new(read)?;
    }
    Ok(())
}

/// Bytes of a record of the sample on average; too few where quoted fields go over lines.
fn mean_record(sample: &[u8], dialect: &Dialect) -> usize {
    let count = |end: u8| sample.iter().filter(|byte| **byte == end).count();
    let lines = match dialect.line_end {
        LineEnd::Newline | LineEnd::Returns => count(b'\n'),
        LineEnd::Any => count(b'\n').max(count(b'\r')),
    };
    sample.len() / lines.max(1)
}

/// The filter and expressions of a request.
#[cfg(feature = "sql")]
fn row_program(
    request: &PlanRequest,
    read: &Schema,
    table: Option<&Schema>,
    began_us: i64,
) -> Result<Option<Arc<dyn RowProgram>>> {
    let sql = RowSql { filter: request.filter.clone(), select: request.select.clone() };
    let wanted = sql != RowSql::default();
    wanted.then(|| plan_row_program(&sql, read, table, began_us)).transpose()
}

#[cfg(not(feature = "sql"))]
fn row_program(
    request: &PlanRequest,
    _read: &Schema,
    _table: Option<&Schema>,
    _began_us: i64,
) -> Result<Option<Arc<dyn RowProgram>>> {
    match request.filter.is_some() || request.select.is_some() {
        false => Ok(None),
        true => Err(Error::Invalid(
            "--where and --select need the engine of SQL, which this program was built without: build it \
             with the feature sql, as cargo does by default"
                .to_owned(),
        )),
    }
}

/// Checks that the other inputs have the fields of the first, in its order: they are read alike.
fn check_fields(
    inputs: &Inputs,
    first: &str,
    sniffed: &Sniffed,
    request: &PlanRequest,
    given: &GivenDialect,
) -> Result<()> {
    for input in inputs.iter().filter(|input| input.name != first) {
        let (text, end) = sample(&input, None, HEADER_BYTES)?;
        if is_blank(&text) {
            continue;
        }
        let other = sniff(&input.name, &text, end, given, None)?;
        let pairs = sniffed.schema.columns().iter().zip(other.schema.columns());
        let alike = pairs.filter(|(a, b)| same_name(&a.name, &b.name)).count();
        if alike != sniffed.schema.len() || alike != other.schema.len() {
            return Err(Error::Invalid(format!(
                "{} has other fields than {first}, or in another order: {}",
                input.name,
                request.reader.joining()
            )));
        }
    }
    Ok(())
}

/// Refuses types of columns that a table has with other types.
fn check_types(given: &[Column], schema: &Schema, table: &str) -> Result<()> {
    for column in given {
        let Some(at) = schema.position(&column.name) else {
            return Err(Error::Invalid(format!(
                "--types: table {table} has no column {}; it has {}",
                column.name,
                names_of(schema)
            )));
        };
        let has = schema.columns()[at].data_type;
        if has != column.data_type {
            return Err(Error::Invalid(format!(
                "--types: column {} of table {table} is {has}, not {}: leave it out, or load into another table",
                column.name, column.data_type
            )));
        }
    }
    Ok(())
}

/// What an input tells of columns, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tells {
    /// It has no record: nothing but line ends, or an empty list of JSON.
    NoRecord,
    /// It has records of JSON without a key.
    NoKey,
    /// It may tell them.
    Something,
}

/// The input that is looked at first, and its first bytes.
struct First {
    input: InputFile,
    sample: Vec<u8>,
    end: SampleEnd,
    tells: Tells,
}

/// The first input that tells columns, or else one that tells as much as the others.
fn first_telling(
    inputs: &Inputs,
    stream: Option<&OpenedStream>,
    bytes_max: usize,
    given: &GivenDialect,
) -> Result<First> {
    let mut best: Option<First> = None;
    for input in inputs.iter() {
        let (sample, end) = sample(&input, stream, bytes_max)?;
        let tells = match end {
            SampleEnd::Whole if is_blank(&sample) => {
                check_may_be_blank(&input.name)?;
                Tells::NoRecord
            }
            _ if input.is_sheet() || matches!(input.source, InputSource::Rows { .. }) => {
                Tells::Something
            }
            _ => match json_tells(&sample, end, given) {
                Some(JsonTells::Nothing) if end == SampleEnd::Whole => Tells::NoRecord,
                Some(JsonTells::Nothing | JsonTells::Records) => Tells::NoKey,
                Some(JsonTells::Keys) | None => Tells::Something,
            },
        };
        let is_better = best.as_ref().is_none_or(|best| {
            // A list of JSON without records tells at least that it is one.
            best.tells < tells || is_blank(&best.sample) && !is_blank(&sample)
        });
        if is_better {
            best = Some(First { input, sample, end, tells });
        }
        if tells == Tells::Something {
            break;
        }
    }
    best.ok_or_else(|| Error::Invalid("no input: name a file, a glob, or -".to_owned()))
}

/// Endings of files that have bytes even where they have no record.
const NEVER_BLANK: [(&str, &str); 8] = [
    (".parquet", "Parquet"),
    (".avro", "Avro"),
    (".arrow", "Arrow"),
    (".arrows", "Arrow"),
    (".ipc", "Arrow"),
    (".feather", "Arrow"),
    (".xlsx", "a workbook"),
    (".xlsm", "a workbook"),
];

/// What a file is by its name, if none of its kind is without bytes.
fn never_blank(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    NEVER_BLANK.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, kind)| *kind)
}

/// Refuses an input that is empty, though no file of its name is.
fn check_may_be_blank(name: &str) -> Result<()> {
    let Some(kind) = never_blank(name) else { return Ok(()) };
    Err(Error::Input {
        place: Box::new(Place { file: name.to_owned(), ..Place::default() }),
        text: format!("the file is empty, and {kind} has a head at least: was it cut short?"),
    })
}

/// Refuses inputs that are empty beside text, though no file of their names is.
fn check_blank_among(inputs: &Inputs, first: &str) -> Result<()> {
    for input in inputs.iter().filter(|input| input.name != first) {
        if never_blank(&input.name).is_some() && is_blank(&sample(&input, None, HEADER_BYTES)?.0) {
            check_may_be_blank(&input.name)?;
        }
    }
    Ok(())
}

pub(crate) fn is_blank(text: &[u8]) -> bool {
    text[coload_source::bom_len(text)..].iter().all(|byte| matches!(byte, b'\n' | b'\r'))
}

fn known_schema(
    known: impl Fn(&str) -> Result<Option<Schema>>,
    request: &PlanRequest,
    table: &str,
) -> Result<(Option<Schema>, SchemaOrigin)> {
    if let Some(schema) = &request.schema {
        return Ok((Some(schema.clone()), SchemaOrigin::Given));
    }
    if request.mode == LoadMode::Append
        && let Some(schema) = known(table)?
    {
        return Ok((Some(schema), SchemaOrigin::Table));
    }
    Ok((None, SchemaOrigin::Inferred))
}

/// The first bytes of an input.
pub(crate) fn sample(
    input: &InputFile,
    stream: Option<&OpenedStream>,
    bytes_max: usize,
) -> Result<(Vec<u8>, SampleEnd)> {
    match (&input.source, stream) {
        (_, Some(stream)) => stream.sample(bytes_max),
        // They have no bytes that tell anything.
        (InputSource::Rows { .. }, None) => Ok((Vec::new(), SampleEnd::Cut)),
        (
            InputSource::File { .. }
            | InputSource::Part { .. }
            | InputSource::Member { .. }
            | InputSource::Object(_),
            None,
        ) => {
            let (text, state) = sample_input(input, bytes_max)?;
            Ok((text, sample_end(state)))
        }
        (_, None) => Err(Error::Invalid(format!(
            "{}: standard input or a pipe is loaded alone, not together with other inputs",
            input.name
        ))),
    }
}
