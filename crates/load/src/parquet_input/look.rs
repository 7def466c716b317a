//! What a file tells before it is loaded: whether it is Parquet, its fields, and how large its records are.

use coload_arrow::{ArrowType, Fault};
use coload_input::{InputFile, InputSource, Raw, RawFile, TextInput};
use coload_parquet::{Footer, Leaves, MAGIC, ParquetField, RowGroup, TAIL_BYTES};
use coload_types::{Error, Place, Result};

use super::files::read_footer;
use super::{not_a_file, open_file};
use crate::request::{InputForm, LoadRequest};
use crate::typed::{TypedField, TypedInput, TypedKind, read_at};

/// What a file begins with that is encrypted as a whole.
const ENCRYPTED_MAGIC: &[u8; 4] = b"PARE";
/// Bytes that a footer takes at most which is looked at.
const FOOTER_BYTES_MAX: u64 = 128 << 20;
/// Least bytes that a field takes in memory.
const FIELD_BYTES: usize = 8;

/// Looks at the first bytes of an input, decompressed, and at its footer; `None` when it is no Parquet.
///
/// # Errors
/// `Input` when it is damaged, `Invalid` when it does not come from a file, or is encrypted.
pub fn look_at_parquet(input: &InputFile, head: &[u8]) -> Result<Option<TypedInput>> {
    let name = &input.name;
    if head.starts_with(ENCRYPTED_MAGIC) && name.ends_with(".parquet") {
        return Err(Error::Invalid(format!("{name}: the file is encrypted, which is not read")));
    }
    if !head.starts_with(MAGIC) || !is_binary(name, &head[MAGIC.len()..]) {
        return Ok(None);
    }
    if !may_be_file(input) {
        return Err(not_a_file(name));
    }
    let footer = footer_of(open_file(input)?.as_ref())?;
    Ok(Some(TypedInput {
        kind: TypedKind::Parquet,
        record_bytes: record_bytes(&footer),
        fields: footer.fields.into_iter().map(field).collect(),
    }))
}

/// The row groups of a file, in their order, without their columns.
///
/// # Errors
/// `Input` when it is damaged.
pub fn row_groups(file: &RawFile) -> Result<Vec<RowGroup>> {
    Ok(footer_of(file)?.groups)
}

/// Rows of all inputs of a load, where their footers tell it: of Parquet of which nothing is left out.
///
/// # Errors
/// `Input` when one is damaged, `Invalid` when it is no file, `Unavailable` when it cannot be read.
pub fn rows_told(request: &LoadRequest) -> Result<Option<u64>> {
    let is_whole = request.share.is_none()
        && request.program.is_none()
        && request.wanted.is_none()
        && request.sample_bytes.is_none()
        && request.schema.checks().is_empty();
    if request.form != InputForm::Parquet || !is_whole {
        return Ok(None);
    }
    let mut rows = 0_u64;
    for input in request.inputs.iter() {
        rows = rows.saturating_add(footer_of(open_file(&input)?.as_ref())?.rows);
    }
    Ok(Some(rows))
}

/// The footer of a file, without its column chunks.
fn footer_of(file: &RawFile) -> Result<Footer> {
    let name = file.name();
    let byte = file.bytes().saturating_sub(TAIL_BYTES as u64);
    let (footer, _) =
        read_footer(file, FOOTER_BYTES_MAX, |_| Ok(Leaves::default())).map_err(|error| {
            let place = Place { file: name.to_owned(), line: 0, byte, field: 0 };
            match error {
                Fault::Damaged(_) => Error::Input {
                    place: Box::new(place),
                    text: format!("{error}; nothing was loaded"),
                },
                Fault::Read(error) => error,
                Fault::TooLarge(bytes) => Error::Limit(format!(
                    "{name}: the footer takes {bytes} bytes in memory, and {FOOTER_BYTES_MAX} may be (write files of \
                     fewer columns or row groups)"
                )),
                other => Error::Invalid(format!("{name}: {other}")),
            }
        })?;
    Ok(footer)
}

fn may_be_file(input: &InputFile) -> bool {
    matches!(
        input.source,
        InputSource::File { .. }
            | InputSource::Part { .. }
            | InputSource::Member { .. }
            | InputSource::Object(_)
    )
}

/// Refuses a file of no known kind that ends as Parquet does: it would be taken for text. The end is looked at of what is named so, or
/// begins as no text does.
///
/// # Errors
/// `Input` when it is one, `Unavailable` when it cannot be read.
pub fn refuse_damaged_start(input: &InputFile, head: &[u8]) -> Result<()> {
    let name = &input.name;
    let looks_binary = head.iter().take(START_BYTES).any(|byte| !is_text(byte));
    if !may_be_file(input) || head.is_empty() || !is_named(name) && !looks_binary {
        return Ok(());
    }
    let opened = TextInput::open(input)?;
    let is_plain = opened.is_plain_file();
    let Raw::File { file, .. } = opened.raw else { return Ok(()) };
    let Some(at) = file.bytes().checked_sub(MAGIC.len() as u64).filter(|_| is_plain) else {
        return Ok(());
    };
    match read_at(&file, at, MAGIC.len())? == MAGIC {
        true => Err(Error::Input {
            place: Box::new(Place { file: name.clone(), line: 0, byte: 0, field: 0 }),
            text: "the file ends as Parquet does, with PAR1, and does not begin so: its start is damaged; nothing was loaded"
                .to_owned(),
        }),
        false => Ok(()),
    }
}

/// Bytes of the start of a text among which there is none that texts do not have.
const START_BYTES: usize = 64;

fn is_text(byte: &u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..)
}

fn is_named(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".parquet")
}

/// Whether what comes behind the magic is no text: the head of a page, or a footer.
fn is_binary(name: &str, behind: &[u8]) -> bool {
    is_named(name) || !behind.first().is_some_and(is_text)
}

fn field(field: ParquetField) -> TypedField {
    TypedField {
        data_type: field.sql_type(),
        is_readable: field.stored.is_some(),
        is_null: field.meaning == ArrowType::Null,
        is_null_list: field.is_null_list(),
        name: field.name,
        nullable: field.nullable,
        kind: field.kind,
    }
}

/// Bytes of a record in memory on average.
fn record_bytes(footer: &Footer) -> Option<usize> {
    let each = footer.raw_bytes.checked_div(footer.rows)?;
    Some((each as usize).max(footer.fields.len() * FIELD_BYTES))
}

impl InputForm {
    /// The form in the words of messages; `None` for text.
    pub fn typed_name(self) -> Option<&'static str> {
        match self {
            InputForm::Text => None,
            InputForm::Arrow => Some("Arrow"),
            InputForm::Parquet => Some("Parquet"),
            InputForm::Avro => Some("Avro"),
            InputForm::Rows => Some("rows of a database or a program"),
        }
    }
}
