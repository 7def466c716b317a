//! How the text is written, as bytes: the server parses in `pipe` and `seq`, and loads that read the
//! same text differently are different.
//!
//! The fields are listed once, in [`pass_dialect`], which both a writer and a reader go through.

use std::sync::Arc;

use coload_source::{
    Aligned, DateFormat, Dialect, Encoding, Escapes, FixedWidths, Formats, Header, Holds,
    InvalidBytes, JsonForm, JsonRules, Keys, LineEnd, LongDelimiter, NullsAre, Path, Policies,
    Quotes, Ragged, Said, TextEncoding, TimestampFormat, Trailing, TypeOrder, UnknownKeys,
};
use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Error, Result};

/// Flags of a dialect: a delimiter ends records; where fields stand comes behind the rest; then how columns are drawn; last come the
/// texts that are NULL in columns that are not text.
const TRAILING: u8 = 1;
const FIXED: u8 = 2;
const TYPED_NULLS: u8 = 4;
/// Escapes outside quotes; NULLs in quotes; how timestamps are written; the order of types, and the columns whose types were given; how columns are drawn: each behind
/// the rest if it is not what it is by default, so that a dialect without them is written as ever.
const ESCAPES: u8 = 8;
const QUOTED_NULLS: u8 = 16;
const TIMESTAMP: u8 = 32;
const TYPE_ORDER: u8 = 64;
const ALIGNED: u8 = 128;
/// Most columns of a table.
const TYPED_MAX: u64 = coload_ddl::COLUMNS_MAX as u64;
/// Most texts that mean NULL.
const NULLS_MAX: u64 = 4096;

pub(crate) fn put_dialect(out: &mut Vec<u8>, dialect: &Dialect) {
    // What is written is what is there, which fits.
    let _ = pass_dialect(&mut Writer(out), &mut dialect.clone());
}

/// Reads what [`put_dialect`] wrote, and checks it.
pub(crate) fn read_dialect(reader: &mut ByteReader<'_>) -> Result<Dialect> {
    let mut dialect = Dialect::default();
    pass_dialect(&mut Reader(reader), &mut dialect)?;
    dialect.check()?;
    Ok(dialect)
}

/// Takes or gives values, one after the other.
trait Passage {
    fn byte(&mut self, value: &mut u8) -> Result<()>;
    fn number(&mut self, value: &mut u64) -> Result<()>;
    fn bytes(&mut self, value: &mut Vec<u8>) -> Result<()>;

    fn choice<T: Copy + PartialEq>(&mut self, value: &mut T, all: &[T]) -> Result<()> {
        let mut number = all.iter().position(|v| v == value).unwrap_or(0) as u8;
        self.byte(&mut number)?;
        let found = all.get(usize::from(number));
        *value = *found.ok_or_else(|| Error::Corrupt(format!("choice {number} of a dialect")))?;
        Ok(())
    }

    fn optional_byte(&mut self, value: &mut Option<u8>) -> Result<()> {
        let (mut is, mut byte) = (u8::from(value.is_some()), value.unwrap_or(0));
        self.byte(&mut is)?;
        self.byte(&mut byte)?;
        *value = (is != 0).then_some(byte);
        Ok(())
    }

    fn text(&mut self, value: &mut String) -> Result<()> {
        let mut bytes = std::mem::take(value).into_bytes();
        self.bytes(&mut bytes)?;
        *value = String::from_utf8(bytes)
            .map_err(|_| Error::Corrupt("a text that is not UTF-8".into()))?;
        Ok(())
    }
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Passage for Writer<'_> {
    fn byte(&mut self, value: &mut u8) -> Result<()> {
        self.0.push(*value);
        Ok(())
    }

    fn number(&mut self, value: &mut u64) -> Result<()> {
        put_varint(self.0, *value);
        Ok(())
    }

    fn bytes(&mut self, value: &mut Vec<u8>) -> Result<()> {
        put_bytes(self.0, value);
        Ok(())
    }
}

struct Reader<'a, 'b>(&'a mut ByteReader<'b>);

impl Passage for Reader<'_, '_> {
    fn byte(&mut self, value: &mut u8) -> Result<()> {
        *value = self.0.u8()?;
        Ok(())
    }

    fn number(&mut self, value: &mut u64) -> Result<()> {
        *value = self.0.varint()?;
        Ok(())
    }

    fn bytes(&mut self, value: &mut Vec<u8>) -> Result<()> {
        *value = self.0.bytes()?.to_vec();
        Ok(())
    }
}

/// Every field is named, so that a new one is not forgotten.
fn pass_dialect(passage: &mut impl Passage, dialect: &mut Dialect) -> Result<()> {
    let Dialect {
        delimiter,
        long_delimiter,
        fixed,
        aligned,
        quote,
        escape,
        escapes,
        header,
        nulls,
        nulls_are,
        typed_nulls,
        skip,
        comment,
        trailing,
        line_end,
        header_rows,
        footer,
        policies: Policies { ragged, quotes, invalid_bytes },
        encoding: TextEncoding { encoding, said },
        formats: Formats { decimal, thousands, date, timestamp },
        types,
        typed,
        json,
    } = dialect;
    passage.byte(delimiter)?;
    pass_long_delimiter(passage, long_delimiter)?;
    for byte in [quote, escape, comment] {
        passage.optional_byte(byte)?;
    }
    passage.choice(header, &[Header::Absent, Header::Present])?;
    let parts = [
        (TRAILING, *trailing == Trailing::Delimiter),
        (FIXED, fixed.is_some()),
        (ALIGNED, aligned.is_some()),
        (TYPED_NULLS, !typed_nulls.is_empty()),
        (ESCAPES, *escapes != Escapes::Quoted),
        (QUOTED_NULLS, *nulls_are == NullsAre::AlsoQuoted),
        (TIMESTAMP, timestamp.is_some()),
        (TYPE_ORDER, !types.is_default() || !typed.is_empty()),
    ];
    let mut flags =
        parts.iter().fold(0, |flags, (flag, on)| if *on { flags | flag } else { flags });
    passage.byte(&mut flags)?;
    if flags & !parts.iter().fold(0, |all, (flag, _)| all | flag) != 0 {
        return Err(Error::Corrupt(format!("flags {flags} of a dialect")));
    }
    *trailing = if flags & TRAILING == 0 { Trailing::Newline } else { Trailing::Delimiter };
    passage.choice(line_end, &[LineEnd::Newline, LineEnd::Any, LineEnd::Returns])?;
    passage.choice(ragged, &[Ragged::Reject, Ragged::Pad, Ragged::Truncate])?;
    passage.choice(quotes, &[Quotes::Strict, Quotes::Lenient])?;
    passage.choice(invalid_bytes, &[InvalidBytes::Reject, InvalidBytes::Replace])?;
    for number in [skip, header_rows, footer] {
        passage.number(number)?;
    }
    pass_nulls(passage, nulls)?;
    let mut label = encoding.to_string();
    passage.text(&mut label)?;
    *encoding = Encoding::from_label(&label)?;
    passage.choice(said, &[Said::Nobody, Said::User])?;
    passage.byte(decimal)?;
    passage.optional_byte(thousands)?;
    let mut format = date.as_ref().map_or("", DateFormat::text).to_owned();
    passage.text(&mut format)?;
    *date = match format.as_str() {
        "" => None,
        text => Some(DateFormat::parse(text).map_err(Error::Corrupt)?),
    };
    if flags & FIXED != 0 {
        let mut widths = fixed.as_ref().map_or_else(String::new, FixedWidths::to_string);
        passage.text(&mut widths)?;
        *fixed = Some(FixedWidths::parse(&widths)?);
    }
    if flags & ALIGNED != 0 {
        let mut name = aligned.map_or_else(String::new, |aligned| aligned.to_string());
        passage.text(&mut name)?;
        let unknown = || Error::Corrupt(format!("columns set apart by \"{name}\""));
        *aligned = Some(Aligned::of_name(&name).ok_or_else(unknown)?);
    }
    if flags & TYPED_NULLS != 0 {
        pass_nulls(passage, typed_nulls)?;
    }
    if flags & ESCAPES != 0 {
        passage.choice(escapes, &[Escapes::Quoted, Escapes::Anywhere, Escapes::Letters])?;
    }
    if flags & QUOTED_NULLS != 0 {
        *nulls_are = NullsAre::AlsoQuoted;
    }
    if flags & TIMESTAMP != 0 {
        let mut format = timestamp.as_ref().map_or("", TimestampFormat::text).to_owned();
        passage.text(&mut format)?;
        *timestamp = Some(TimestampFormat::parse(&format).map_err(Error::Corrupt)?);
    }
    if flags & TYPE_ORDER != 0 {
        let mut order = types.to_string();
        passage.text(&mut order)?;
        *types = TypeOrder::parse(&order).map_err(Error::Corrupt)?;
        pass_typed(passage, typed)?;
    }
    // Of delimited text no delimiter is a newline.
    if *delimiter == b'\n' {
        pass_json(passage, json)?;
    }
    Ok(())
}

fn pass_json(passage: &mut impl Passage, json: &mut Option<Arc<JsonRules>>) -> Result<()> {
    let there = json.take();
    let mut form = there.as_ref().map_or(JsonForm::Lines, |rules| rules.form);
    let mut unknown = there.as_ref().map_or(UnknownKeys::Reject, |rules| rules.unknown);
    let mut unnest = there.as_ref().and_then(|rules| rules.unnest.clone());
    let mut read = (form, unnest.is_some());
    let forms = [JsonForm::Lines, JsonForm::Documents];
    let choices = [false, true].into_iter().flat_map(|lists| forms.map(|form| (form, lists)));
    passage.choice(&mut read, &choices.collect::<Vec<_>>())?;
    form = read.0;
    passage.choice(&mut unknown, &[UnknownKeys::Reject, UnknownKeys::Ignore])?;
    let mut paths = there.map_or_else(Vec::new, |rules| rules.keys.paths().to_vec());
    let mut count = paths.len() as u64;
    passage.number(&mut count)?;
    if count > TYPED_MAX {
        return Err(Error::Corrupt(format!("{count} paths of JSON")));
    }
    paths.resize_with(count as usize, Path::default);
    for Path { keys, holds } in &mut paths {
        passage.choice(holds, &[Holds::Value, Holds::Json])?;
        let mut length = keys.len() as u64;
        passage.number(&mut length)?;
        if length > TYPED_MAX {
            return Err(Error::Corrupt(format!("a path of {length} keys")));
        }
        keys.resize_with(length as usize, String::new);
        keys.iter_mut().try_for_each(|key| passage.text(key))?;
    }
    let keys = Arc::new(Keys::new(paths).map_err(Error::Corrupt)?);
    unnest = match read.1 {
        true => Some(pass_list(passage, unnest.unwrap_or_default())?),
        false => None,
    };
    let rules = JsonRules { form, keys, unknown, unnest };
    rules.check().map_err(|error| Error::Corrupt(error.to_string()))?;
    *json = Some(Arc::new(rules));
    Ok(())
}

/// The path of a list.
fn pass_list(passage: &mut impl Passage, mut list: Vec<String>) -> Result<Vec<String>> {
    let mut length = list.len() as u64;
    passage.number(&mut length)?;
    if length > TYPED_MAX {
        return Err(Error::Corrupt(format!("a path of {length} keys")));
    }
    list.resize_with(length as usize, String::new);
    list.iter_mut().try_for_each(|key| passage.text(key))?;
    Ok(list)
}

fn pass_typed(passage: &mut impl Passage, typed: &mut Vec<u32>) -> Result<()> {
    let mut count = typed.len() as u64;
    passage.number(&mut count)?;
    if count > TYPED_MAX {
        return Err(Error::Corrupt(format!("{count} columns of given types")));
    }
    let mut there = std::mem::take(typed).into_iter();
    for _ in 0..count {
        let mut column = u64::from(there.next().unwrap_or_default());
        passage.number(&mut column)?;
        let column = u32::try_from(column);
        typed.push(column.map_err(|_| Error::Corrupt("a column of a dialect".into()))?);
    }
    Ok(())
}

fn pass_long_delimiter(
    passage: &mut impl Passage,
    delimiter: &mut Option<LongDelimiter>,
) -> Result<()> {
    let mut bytes = delimiter.as_ref().map_or(&[][..], LongDelimiter::bytes).to_vec();
    passage.bytes(&mut bytes)?;
    *delimiter = LongDelimiter::new(&bytes);
    if delimiter.is_none() && !bytes.is_empty() {
        return Err(Error::Corrupt(format!("a delimiter of {} bytes", bytes.len())));
    }
    Ok(())
}

fn pass_nulls(passage: &mut impl Passage, nulls: &mut Vec<Vec<u8>>) -> Result<()> {
    let mut count = nulls.len() as u64;
    passage.number(&mut count)?;
    if count > NULLS_MAX {
        return Err(Error::Corrupt(format!("{count} texts for NULL")));
    }
    let mut there = std::mem::take(nulls).into_iter();
    for _ in 0..count {
        let mut null = there.next().unwrap_or_default();
        passage.bytes(&mut null)?;
        nulls.push(null);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_dialect_comes_back_and_a_cut_one_is_refused() {
        let dialect = Dialect {
            delimiter: b';',
            long_delimiter: None,
            quote: Some(b'\''),
            escape: Some(b'\\'),
            escapes: Escapes::Letters,
            nulls_are: NullsAre::AlsoQuoted,
            types: TypeOrder::parse("DOUBLE,BIGINT").unwrap(),
            typed: vec![3, 300],
            header: Header::Present,
            nulls: vec![b"NULL".to_vec(), Vec::new()],
            typed_nulls: vec![b"NA".to_vec(), b"-".to_vec()],
            skip: 3,
            line_end: LineEnd::Any,
            header_rows: 2,
            footer: 1,
            policies: Policies {
                ragged: Ragged::Truncate,
                quotes: Quotes::Lenient,
                invalid_bytes: InvalidBytes::Replace,
            },
            formats: Formats {
                decimal: b',',
                thousands: Some(b'.'),
                date: Some(DateFormat::parse("%d.%m.%Y").unwrap()),
                timestamp: Some(TimestampFormat::parse("%F %I:%M %p").unwrap()),
            },
            ..Dialect::default()
        };
        let fixed = FixedWidths::parse("3,5,2").unwrap();
        let fixed = Dialect { fixed: Some(fixed), quote: None, ..Dialect::default() };
        let aligned = Dialect { aligned: Some(Aligned::WideSpaces), ..Dialect::default() };
        let path = |keys: &[&str], holds| Path {
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            holds,
        };
        let paths = vec![path(&["a", "b.c"], Holds::Value), path(&["d"], Holds::Json)];
        let keys = Arc::new(Keys::new(paths).unwrap());
        let rules = JsonRules {
            form: JsonForm::Documents,
            keys,
            unknown: UnknownKeys::Ignore,
            unnest: Some(vec!["zz".to_owned()]),
        };
        let json = Dialect { delimiter: b'\n', json: Some(Arc::new(rules)), ..Dialect::default() };
        for dialect in [dialect, fixed, aligned, json] {
            let mut bytes = Vec::new();
            put_dialect(&mut bytes, &dialect);
            assert_eq!(read_dialect(&mut ByteReader::new(&bytes)).unwrap(), dialect);
            for cut in 0..bytes.len() {
                assert!(read_dialect(&mut ByteReader::new(&bytes[..cut])).is_err(), "{cut}");
            }
        }
    }
}
