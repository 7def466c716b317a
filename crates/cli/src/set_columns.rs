//! Columns that the user sets, and those that the input lacks.

use coload_ddl::Schema;
use coload_ddl::literal_sql;
use coload_input::Names;
use coload_load::check_partition;
use coload_source::{ColumnForms, Formats, SampleEnd};
use coload_types::{Column, DataType, Error, Result, parse_value, same_name};
use coload_wire::{ColumnFrom, Derivation, load_time, partition_value};

/// What a column is set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetValue {
    /// A value, as a field would tell it.
    Text(String),
    /// NULL in each row.
    Null,
    /// The name of the input that a row comes from.
    InputName,
    /// The value of the column's name in the path of the input that a row comes from, as in `year=2026/a.csv`.
    Partition,
    /// When the load began, the same for all rows.
    LoadTime,
}

/// A column that is not read from the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetColumn {
    /// Name of the column, as the flag has it.
    pub column: String,
    /// What stands in it.
    pub value: SetValue,
}

impl SetColumn {
    /// Reads `COLUMN=VALUE`.
    ///
    /// # Errors
    /// `Invalid` when it is not of that form.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Err(Error::Invalid(format!(
                "--set \"{text}\": {why}, as in --set batch=7, --set source=@file, --set loaded=@load-time \
                 or --set note=@null (@@ is a text that starts with @)"
            )))
        };
        let Some((column, value)) = text.split_once('=').filter(|(column, _)| !column.is_empty())
        else {
            return wrong("expected COLUMN=VALUE");
        };
        let value = match value.strip_prefix('@') {
            None => SetValue::Text(value.to_owned()),
            Some(rest) if rest.starts_with('@') => SetValue::Text(rest.to_owned()),
            Some("file") => SetValue::InputName,
            Some("path") => SetValue::Partition,
            Some("load-time") => SetValue::LoadTime,
            Some("null") => SetValue::Null,
            Some(_) => return wrong("expected @file, @path, @load-time or @null"),
        };
        Ok(SetColumn { column: column.to_owned(), value })
    }

    /// The column of a table that is not there yet.
    fn to_column(&self, names: &Names) -> Column {
        let data_type = match &self.value {
            SetValue::Text(text) => {
                let mut forms = ColumnForms::default();
                forms.add(text.as_bytes(), &Formats::default());
                forms.data_type(SampleEnd::Whole)
            }
            SetValue::Partition => {
                let mut forms = ColumnForms::default();
                for name in names.iter() {
                    if let Some(Some(value)) = partition_value(&name, &self.column) {
                        forms.add(value.as_bytes(), &Formats::default());
                    }
                }
                forms.data_type(SampleEnd::Whole)
            }
            SetValue::Null | SetValue::InputName => DataType::Varchar(None),
            SetValue::LoadTime => DataType::TimestampTz,
        };
        Column::new(&self.column, data_type)
    }

    fn resolve(&self, column: &Column, names: &Names, began_us: i64) -> Result<ColumnFrom> {
        let data_type = column.data_type;
        let refuse = |what: &str, why: &str| {
            let name = &column.name;
            Err(Error::Invalid(format!("--set {name}: {what} is not {data_type}: {why}")))
        };
        let value = match &self.value {
            SetValue::Null if !column.nullable => {
                return Err(Error::Invalid(format!("--set {}: it is NOT NULL", column.name)));
            }
            SetValue::Null => None,
            SetValue::Text(text) => match parse_value(text.as_bytes(), data_type) {
                Ok(value) => Some(value),
                Err(rule) => return refuse(&format!("\"{text}\""), rule.text()),
            },
            SetValue::InputName => {
                if !data_type.is_text() {
                    return refuse("a name of a file", "only text holds it");
                }
                for name in names.iter() {
                    if let Err(rule) = parse_value(name.as_bytes(), data_type) {
                        return refuse(&format!("\"{name}\""), rule.text());
                    }
                }
                return Ok(ColumnFrom::InputName);
            }
            SetValue::Partition => {
                check_partition(column, &self.column, names)?;
                return Ok(ColumnFrom::Partition(self.column.as_str().into()));
            }
            SetValue::LoadTime => match load_time(began_us, data_type) {
                Some(_) => return Ok(ColumnFrom::LoadTime),
                None => return refuse("a time", "TIMESTAMP, DATE and VARCHAR hold it"),
            },
        };
        Ok(ColumnFrom::Constant(value))
    }
}

/// The columns of a table that are set.
#[derive(Debug)]
pub struct SetColumns {
    /// For each column of the table, if that is known, what it is set to.
    from: Vec<Option<ColumnFrom>>,
    /// Columns of a table that is not there yet, after those of the input.
    new: Vec<(Column, ColumnFrom)>,
}

impl SetColumns {
    /// Finds the columns that are set in the table, if it is known, for a load that began at `began_us`.
    ///
    /// # Errors
    /// `Invalid` when there is no such column, or it does not hold the value.
    pub fn find(
        set: &[SetColumn],
        table: Option<&Schema>,
        names: &Names,
        began_us: i64,
    ) -> Result<Self> {
        let mut found =
            SetColumns { from: vec![None; table.map_or(0, Schema::len)], new: Vec::new() };
        for (index, column) in set.iter().enumerate() {
            let same = |other: &SetColumn| same_name(&other.column, &column.column);
            if set[..index].iter().any(same) {
                return Err(Error::Invalid(format!("--set: {} is set twice", column.column)));
            }
            let Some(table) = table else {
                let new = column.to_column(names);
                let from = column.resolve(&new, names, began_us)?;
                found.new.push((new, from));
                continue;
            };
            let Some(position) = table.position(&column.column) else {
                return Err(Error::Invalid(format!(
                    "--set: the table has no column {}; it has {}",
                    column.column,
                    names_of(table)
                )));
            };
            found.from[position] =
                Some(column.resolve(&table.columns()[position], names, began_us)?);
        }
        Ok(found)
    }

    /// Leaves columns of a new table to the fields of their names.
    pub fn leave_to_fields(&mut self, set: &[SetColumn], made: &Schema) {
        self.new.retain(|(column, _)| {
            let is_one = set.iter().any(|set| same_name(&set.column, &column.name));
            !is_one || made.position(&column.name).is_none()
        });
    }

    /// Which of some columns are set, in a line if there are some.
    pub fn told(&self, set: &[SetColumn]) -> Option<String> {
        let has_new = |name: &str| self.new.iter().any(|(new, _)| same_name(&new.name, name));
        let is_known = self.from.iter().any(Option::is_some);
        let told = set.iter().filter(|set| is_known || has_new(&set.column));
        let told: Vec<&str> = told.map(|set| set.column.as_str()).collect();
        let columns = told.join(", ");
        (!told.is_empty())
            .then(|| format!("columns from the paths: {columns} (--no-partitions says otherwise)"))
    }

    /// What stands in columns of the table that are neither set nor `made`, in a line if there are some.
    ///
    /// # Errors
    /// `Invalid` when one is NOT NULL and has no default.
    pub fn lacking(
        &self,
        input: &str,
        table: Option<&Schema>,
        made: &Schema,
    ) -> Result<Option<String>> {
        let columns = table.map_or(&[][..], Schema::columns).iter().zip(&self.from);
        let missing =
            columns.filter(|(c, from)| from.is_none() && made.position(&c.name).is_none());
        let lacking: Vec<String> =
            missing.map(|(column, _)| lacking(input, made, column)).collect::<Result<_>>()?;
        let line =
            format!("columns that the input lacks: {} (--select, --set)", lacking.join(", "));
        Ok((!lacking.is_empty()).then_some(line))
    }

    /// The columns of the table that are left to be read.
    ///
    /// # Errors
    /// `Invalid` when there are none.
    pub fn left(&self, table: &Schema) -> Result<Schema> {
        let columns = table.columns().iter().zip(&self.from);
        let left: Vec<Column> =
            columns.filter(|(_, from)| from.is_none()).map(|(column, _)| column.clone()).collect();
        if left.is_empty() {
            return Err(Error::Invalid(
                "--set leaves no column that is read from the input".into(),
            ));
        }
        Schema::new(left)
    }

    /// The table's columns and where they come from, when `made` are made of those that are `read`: the others
    /// are set, or get their defaults.
    ///
    /// # Errors
    /// `Invalid` when a new column has the name of one that is read.
    pub fn derive(
        self,
        table: Option<Schema>,
        made: Schema,
        read: Schema,
        with_program: bool,
    ) -> Result<(Schema, Option<Derivation>)> {
        let Some(table) = table else {
            if let Some((column, _)) =
                self.new.iter().find(|(c, _)| made.position(&c.name).is_some())
            {
                return Err(Error::Invalid(format!(
                    "--set {0}: the input has a field of that name (--map {0}=NAME gives that another)",
                    column.name
                )));
            }
            if self.new.is_empty() && !with_program {
                return Ok((made, None));
            }
            let mut columns = made.columns().to_vec();
            let mut from: Vec<ColumnFrom> = (0..made.len()).map(ColumnFrom::Read).collect();
            for (column, source) in self.new {
                columns.push(column);
                from.push(source);
            }
            return Ok((Schema::new(columns)?, Some(Derivation { read, columns: from })));
        };
        let source = |(column, set): (&Column, Option<ColumnFrom>)| {
            set.or_else(|| made.position(&column.name).map(ColumnFrom::Read))
                .unwrap_or_else(|| ColumnFrom::Constant(column.default.clone()))
        };
        let from: Vec<ColumnFrom> = table.columns().iter().zip(self.from).map(source).collect();
        let all_read = from.iter().enumerate().all(|(i, from)| *from == ColumnFrom::Read(i));
        Ok((table, (with_program || !all_read).then_some(Derivation { read, columns: from })))
    }
}

/// What stands in a column that the input lacks.
///
/// # Errors
/// `Invalid` when it is NOT NULL and has no default.
pub fn lacking(input: &str, fields: &Schema, column: &Column) -> Result<String> {
    let name = &column.name;
    match &column.default {
        Some(value) => Ok(format!("{name} (DEFAULT {})", literal_sql(value, column.data_type))),
        None if column.nullable => Ok(format!("{name} (NULL)")),
        None => Err(Error::Invalid(format!(
            "{input} has no field for column {name}, which is NOT NULL and has no DEFAULT; it has {} (try \
             --map FIELD={name} or --set {name}=VALUE)",
            names_of(fields)
        ))),
    }
}

/// The names of columns, for messages.
pub fn names_of(schema: &Schema) -> String {
    let names: Vec<&str> = schema.columns().iter().map(|c| c.name.as_str()).collect();
    names.join(", ")
}
