//! The flags of `coload load`: what is loaded, where to, how its text is written, and how the load works.

use std::path::PathBuf;

use clap::Args;
use coload::{ConflictRule, RejectLimit, SetColumn};
use coload_source::{DateFormat, FixedWidths, TimestampFormat, TypeOrder};
use coload_space::SpaceSpec;

use super::values::{
    BytesPolicy, Delimiter, Dictionaries, Encoding, EscapesForm, FormatName, GivenColumns,
    KeysPolicy, LineEndForm, OptionalByte, QuotesPolicy, RaggedPolicy, RejectsTo, ReportForm,
    UnnestPath, at_least_one, chunk_size, comment, decimal, delimiter, encoding, escape,
    given_columns, quote, rejects_to, sample_size, space, thousands, unnest_path,
};
use crate::database_args::DatabaseArgs;
use crate::json_mapping::{GivenMapping, parse_mapping};
use crate::place_args::PlaceArgs;
use crate::remote_args::RemoteArgs;
use crate::share_args::ShareArgs;
use crate::sheet_args::SheetArgs;
use crate::size::parse_size;

/// Flags and arguments of `coload load`.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// Files, globs such as 'data/*.csv', members as archive.zip!name, objects such as s3://bucket/key, 's3://bucket/*.csv',
    /// gs://..., az://... and https://host/path, a table of a database as postgres://host/database/table, mysql://... or sqlserver://..., or - for
    /// standard input
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<String>,
    /// Directory of the store, made if absent; or a server: coload://[user@]host[:port][/table]; or a
    /// database: postgres://[user@]host[:port]/database, mysql://..., sqlserver://...; or Parquet files: parquet:DIR
    #[arg(long, value_name = "TARGET")]
    pub into: PathBuf,
    /// Where objects are.
    #[command(flatten)]
    pub places: PlaceArgs,
    /// Which cells of books.
    #[command(flatten)]
    pub sheets: SheetArgs,
    /// How a load into a server works.
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// Which share of a load it is.
    #[command(flatten)]
    pub share: ShareArgs,
    /// How a load into a database works.
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Table; of a database also schema.name [default: the first file's name without its extension]
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// File with the CREATE TABLE of the table; its name of the table is not used
    #[arg(long, value_name = "FILE.sql", conflicts_with_all = ["columns", "types"])]
    pub schema: Option<PathBuf>,
    /// Columns, as in 'a BIGINT NOT NULL, b DECIMAL(15,2)' [default: the table's, or inferred]
    #[arg(long, value_name = "LIST", conflicts_with = "types")]
    pub columns: Option<String>,
    /// Columns of the key of a table that is made: no row has NULL there, and no two rows the same values; rows are kept
    /// in their order
    #[arg(long, value_name = "COLUMN,..", value_delimiter = ',', conflicts_with = "cluster_by")]
    pub primary_key: Vec<String>,
    /// What happens to a key of a PRIMARY KEY that is in the table, or comes twice in the inputs: error; ignore, where the row
    /// of the table and the first record stay; reject, which is the same and sets the other records aside (--max-rejects); replace, where the last record does; newest:COLUMN, where the greatest value
    /// of a column does [default: error]
    #[arg(long, value_name = "error|reject|ignore|replace|newest:COLUMN", value_parser = ConflictRule::parse)]
    pub on_conflict: Option<ConflictRule>,
    /// What records have that delete: those with this value in this column are no rows, and the row of the table with their key goes;
    /// of records with one key the last is chosen, or what --on-conflict newest:COLUMN says
    #[arg(long, value_name = "COLUMN=VALUE")]
    pub delete_where: Option<String>,
    /// Columns whose order the rows of a table are kept in that is made
    #[arg(long, value_name = "COLUMN,..", value_delimiter = ',')]
    pub cluster_by: Vec<String>,
    /// A field of the input, by its name in the header or its number, as a column; other columns are the
    /// fields of their names, and other fields are not read; may be given several times
    #[arg(long, value_name = "FIELD=COLUMN")]
    pub map: Vec<String>,
    /// Columns are the fields of their names, in any order; other fields are not read
    #[arg(long)]
    pub by_name: bool,
    /// Fields of the same name are a column, in inputs with different fields; what an input lacks is NULL or the
    /// column's DEFAULT
    #[arg(long)]
    pub union_by_name: bool,
    /// Load only the rows for which this condition in SQL is true, such as 'price > 0 AND day IS NOT NULL'
    #[arg(long = "where", value_name = "EXPR")]
    pub filter: Option<String>,
    /// Load these columns, made of the input's fields by expressions in SQL: 'id, price * 2 AS double'
    #[arg(long, value_name = "EXPR [AS NAME], ...", conflicts_with_all = ["map", "by_name"])]
    pub select: Option<String>,
    /// A column that is not read: a value, @file for the name of the input, @path for what stands behind COLUMN= in its
    /// path, @load-time or @null; may be given several times
    #[arg(long, value_name = "COLUMN=VALUE", value_parser = SetColumn::parse)]
    pub set: Vec<SetColumn>,
    /// Folders such as year=2026 in the paths of the inputs are columns, or it is an error; without, they are where all
    /// inputs have the same, and no field of that name
    #[arg(long)]
    pub partitions: bool,
    /// Folders such as year=2026 in the paths of the inputs are no columns
    #[arg(long, conflicts_with = "partitions")]
    pub no_partitions: bool,
    /// What happens to a table that exists.
    #[command(flatten)]
    pub mode: ModeArgs,
    /// How the text is written.
    #[command(flatten)]
    pub dialect: DialectArgs,
    /// Records that may be set aside: a count, or a share such as 0.1%; 0 is strict
    #[arg(long, value_name = "N|P%", default_value = "0", value_parser = RejectLimit::parse)]
    pub max_rejects: RejectLimit,
    /// Where the records set aside go, as file, line, byte, column, value, reason, raw: CSV, or a table
    #[arg(long, value_name = "FILE|table:NAME", value_parser = rejects_to)]
    pub rejects: Option<RejectsTo>,
    /// Bytes of the first input that are looked at, such as 16MiB, or all [default: 1MiB]; with
    /// --dry-run also those that are read [default: all]
    #[arg(long, value_name = "SIZE", value_parser = sample_size)]
    pub sample: Option<usize>,
    /// Read, check and compress, and write nothing: types, rejects, bytes in the store, time
    #[arg(long, conflicts_with = "rejects")]
    pub dry_run: bool,
    /// How the load works.
    #[command(flatten)]
    pub pipeline: PipelineArgs,
    /// Form of the report on standard output
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub report: ReportForm,
    /// Have the report estimate the distinct values of columns without a dictionary too; takes some 5 %
    /// longer [default for --dry-run]
    #[arg(long)]
    pub count_distinct: bool,
}

/// Append, replace or create.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct ModeArgs {
    /// Add rows to the table, files to the directory of Parquet files; make it if absent (the default)
    #[arg(long)]
    pub append: bool,
    /// Put the rows in place of what the table holds, the files in place of those that coload load wrote
    #[arg(long)]
    pub replace: bool,
    /// Make the table; fail if it exists, or if there are Parquet files
    #[arg(long)]
    pub create: bool,
}

/// How the text is written; what is not given is found out from the first input.
#[derive(Debug, Args)]
pub struct DialectArgs {
    /// What the inputs are: text, json (documents, or lists of records), json-lines [default: found out]
    #[arg(long, value_name = "FORM", help_heading = "Dialect")]
    pub format: Option<FormatName>,
    /// Keys of JSON that are no column: reject the record, or ignore them
    #[arg(long, value_name = "POLICY", help_heading = "Dirty records")]
    pub unknown_keys: Option<KeysPolicy>,
    /// List of each record of JSON whose items are the rows, beside the other values of the record: keys with points
    /// between them, or a list of keys as '["a.b","c"]'
    #[arg(long, value_name = "PATH", value_parser = unnest_path, help_heading = "Dialect")]
    pub unnest: Option<UnnestPath>,
    /// Which values of JSON the columns are: a file with paths, columns and types, as `coload sniff --output mapping`
    /// prints it
    #[arg(long, value_name = "FILE.json", value_parser = parse_mapping, help_heading = "Dialect")]
    pub mapping: Option<GivenMapping>,
    /// Between two fields: a character, tab, space, \xHH, or several characters; spaces or wide-spaces (runs of them, of two
    /// at least), bars or framed-bars (with blanks around)
    #[arg(long, value_name = "C", value_parser = delimiter, help_heading = "Dialect")]
    pub delimiter: Option<Delimiter>,
    /// No delimiter: widths of fields in characters, such as 10,5,8, or positions, such as 1-10,12-16,20-
    #[arg(long, value_name = "LIST", value_parser = FixedWidths::parse, help_heading = "Dialect")]
    #[arg(conflicts_with_all = ["delimiter", "quote", "escape"])]
    pub fixed_width: Option<FixedWidths>,
    /// Around a field: a character, or none
    #[arg(long, value_name = "C", value_parser = quote, help_heading = "Dialect")]
    pub quote: Option<OptionalByte>,
    /// Before a quote within quotes: a character, or none for a doubled quote
    #[arg(long, value_name = "C", value_parser = escape, help_heading = "Dialect")]
    pub escape: Option<OptionalByte>,
    /// Where the escape is one: within quotes, or anywhere; letters: anywhere, and \t, \n and others are what they are to
    /// MySQL and PostgreSQL [default of --escape: a backslash]
    #[arg(long, value_name = "PLACE", help_heading = "Dialect")]
    pub escapes: Option<EscapesForm>,
    /// The first record names the columns
    #[arg(long, conflicts_with = "no_header", help_heading = "Dialect")]
    pub header: bool,
    /// The first record is a row
    #[arg(long, help_heading = "Dialect")]
    pub no_header: bool,
    /// Records that name the columns, their names joined by a space; 0 for none
    #[arg(long, value_name = "N", conflicts_with_all = ["header", "no_header"], help_heading = "Dialect")]
    pub header_rows: Option<u64>,
    /// An unquoted field that stands for NULL; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Dialect")]
    pub null: Vec<String>,
    /// The texts of --null stand for NULL in quotes too
    #[arg(long, help_heading = "Dialect")]
    pub quoted_null: bool,
    /// A field, quoted or not, that stands for NULL in columns of other types than text, such as NA; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Dialect")]
    pub typed_null: Vec<String>,
    /// Before the digits of a fraction, such as , in 12,50
    #[arg(long, value_name = "C", value_parser = decimal, help_heading = "Dialect")]
    pub decimal_separator: Option<u8>,
    /// Between groups of three digits
    #[arg(long, value_name = "C", value_parser = thousands, help_heading = "Dialect")]
    pub thousands_separator: Option<u8>,
    /// How dates are written, such as %d.%m.%Y: %d, %m, %b (Jan), %B (January), %Y, %y
    #[arg(long, value_name = "FORMAT", value_parser = DateFormat::parse, help_heading = "Dialect")]
    pub date_format: Option<DateFormat>,
    /// How timestamps are written, such as '%m/%d/%Y %I:%M %p': those of dates, and %H, %I, %M, %S, %f, %p, %z, %Z
    #[arg(long, value_name = "FORMAT", value_parser = TimestampFormat::parse, help_heading = "Dialect")]
    pub timestamp_format: Option<TimestampFormat>,
    /// Types of some columns, as in 'zip VARCHAR, amount DECIMAL(12,2)'; those of the others are inferred
    #[arg(long, value_name = "LIST", value_parser = given_columns, help_heading = "Dialect")]
    pub types: Option<GivenColumns>,
    /// Types that are inferred, the first that holds a column is taken, such as 'BIGINT, DOUBLE, DATE' [default: BOOLEAN,
    /// BIGINT, DECIMAL, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, VARCHAR]
    #[arg(long, value_name = "LIST", value_parser = TypeOrder::parse, help_heading = "Dialect")]
    #[arg(conflicts_with = "all_text")]
    pub type_order: Option<TypeOrder>,
    /// Lines to read over at the start of each input
    #[arg(long, value_name = "N", help_heading = "Dialect")]
    pub skip: Option<u64>,
    /// Lines to leave out at the end of each input, which is a file
    #[arg(long, value_name = "N", help_heading = "Dialect")]
    pub footer: Option<u64>,
    /// What ends a line: LF and CRLF, CR alone too, or LF and any number of CR before it
    #[arg(long, value_name = "ENDS", help_heading = "Dialect")]
    pub line_end: Option<LineEndForm>,
    /// How characters are written: utf-8, utf-16, utf-32, windows-1252, shift_jis, ... [default: found out]
    #[arg(long, value_name = "NAME", value_parser = encoding, help_heading = "Dialect")]
    pub encoding: Option<Encoding>,
    /// Keep inferred columns as text exactly as written; nothing is NULL but what --null says
    #[arg(long, help_heading = "Dialect")]
    pub all_text: bool,
    /// Too few or too many fields: reject, pad (nothing is lost), or truncate too
    #[arg(long, value_name = "POLICY", help_heading = "Dirty records")]
    pub ragged: Option<RaggedPolicy>,
    /// Quotes that do not enclose a field: reject the record, or take them for text
    #[arg(long, value_name = "POLICY", help_heading = "Dirty records")]
    pub quotes: Option<QuotesPolicy>,
    /// Bytes that are not UTF-8: reject the record, or replace them by U+FFFD
    #[arg(long, value_name = "POLICY", help_heading = "Dirty records")]
    pub invalid_bytes: Option<BytesPolicy>,
    /// First character of lines to read over, or none
    #[arg(long, value_name = "C", value_parser = comment, help_heading = "Dialect")]
    pub comment: Option<OptionalByte>,
}

/// How the load works.
#[derive(Debug, Args)]
pub struct PipelineArgs {
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Pipeline")]
    pub threads: Option<usize>,
    /// Most memory, such as 1GiB [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Pipeline")]
    pub memory: Option<usize>,
    /// Bytes of a chunk [default: 10MiB]
    #[arg(long, value_name = "SIZE", value_parser = chunk_size, help_heading = "Pipeline")]
    pub chunk_size: Option<usize>,
    /// Fragments of a partition [default: 50]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Pipeline")]
    pub fragments_per_partition: Option<usize>,
    /// Columns merged at once [default: 2]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Pipeline")]
    pub merge_columns: Option<usize>,
    /// When columns get dictionaries
    #[arg(long, value_name = "POLICY", default_value = "auto", help_heading = "Pipeline")]
    pub dictionaries: Dictionaries,
    /// Where columns are while rows are put in the order of a key: dram, map:DIR, pmem:DIR, disk:DIR or
    /// emulated:READ_NS,READ_GBS,WRITE_GBS, each with ,size=SIZE if need be [default: dram]
    #[arg(long, value_name = "SPACE", value_parser = space, help_heading = "Pipeline")]
    pub sort_space: Option<SpaceSpec>,
    /// Where sorted runs are until they are merged, as --sort-space [default: an eighth of the memory, then the store's
    /// disk]
    #[arg(long, value_name = "SPACE", value_parser = space, help_heading = "Pipeline")]
    pub run_space: Option<SpaceSpec>,
}
