//! How the text is written, as bytes: the server parses in `pipe` and `seq`, and loads that read the
//! same text differently are different.

use coload_format::bytes::{ByteReader, put_bytes, put_varint};
use coload_format::{Error, Result};
use coload_source::{
    DateFormat, Dialect, Encoding, FixedWidths, Formats, Header, InvalidBytes, LineEnd,
    LongDelimiter, Policies, Quotes, Ragged, Said, TextEncoding, Trailing,
};

use super::read_text;

/// Flag beside that of a trailing delimiter: where fields stand comes last.
const FIXED: u8 = 2;

/// Appends a dialect. Every field is named, so that a new one is not forgotten.
pub(super) fn put_dialect(out: &mut Vec<u8>, dialect: &Dialect) {
    let Dialect {
        delimiter,
        long_delimiter,
        fixed,
        quote,
        escape,
        header,
        nulls,
        skip,
        comment,
        trailing,
        line_end,
        header_rows,
        footer,
        policies: Policies { ragged, quotes, invalid_bytes },
        encoding: TextEncoding { encoding, said },
        formats: Formats { decimal, thousands, date },
    } = dialect;
    out.push(*delimiter);
    put_bytes(out, long_delimiter.as_ref().map_or(&[][..], LongDelimiter::bytes));
    for byte in [quote, escape, comment] {
        out.extend([u8::from(byte.is_some()), byte.unwrap_or(0)]);
    }
    out.push(u8::from(*header == Header::Present));
    let is_fixed = if fixed.is_some() { FIXED } else { 0 };
    out.push(u8::from(*trailing == Trailing::Delimiter) | is_fixed);
    out.push(u8::from(*line_end == LineEnd::Any));
    out.push(match ragged {
        Ragged::Reject => 0,
        Ragged::Pad => 1,
        Ragged::Truncate => 2,
    });
    out.push(u8::from(*quotes == Quotes::Lenient));
    out.push(u8::from(*invalid_bytes == InvalidBytes::Replace));
    for number in [*skip, *header_rows, *footer, nulls.len() as u64] {
        put_varint(out, number);
    }
    for null in nulls {
        put_bytes(out, null);
    }
    put_bytes(out, encoding.to_string().as_bytes());
    out.push(u8::from(*said == Said::User));
    out.extend([*decimal, u8::from(thousands.is_some()), thousands.unwrap_or(0)]);
    put_bytes(out, date.as_ref().map_or("", DateFormat::text).as_bytes());
    if let Some(fixed) = fixed {
        put_bytes(out, fixed.to_string().as_bytes());
    }
}

/// Reads what [`put_dialect`] wrote, and checks it.
pub(super) fn read_dialect(reader: &mut ByteReader<'_>) -> Result<Dialect> {
    let delimiter = reader.u8()?;
    let long = reader.bytes()?;
    let long_delimiter = LongDelimiter::new(long);
    if long_delimiter.is_none() && !long.is_empty() {
        return Err(Error::Corrupt(format!("a delimiter of {} bytes", long.len())));
    }
    let mut byte = || -> Result<Option<u8>> {
        let [is, byte] = reader.array()?;
        Ok((is != 0).then_some(byte))
    };
    let (quote, escape, comment) = (byte()?, byte()?, byte()?);
    let header = if reader.u8()? == 0 { Header::Absent } else { Header::Present };
    let flags = reader.u8()?;
    let trailing = match flags & !FIXED {
        0 => Trailing::Newline,
        _ => Trailing::Delimiter,
    };
    let line_end = if reader.u8()? == 0 { LineEnd::Newline } else { LineEnd::Any };
    let ragged = match reader.u8()? {
        0 => Ragged::Reject,
        1 => Ragged::Pad,
        2 => Ragged::Truncate,
        other => return Err(Error::Corrupt(format!("policy {other} for ragged records"))),
    };
    let quotes = if reader.u8()? == 0 { Quotes::Strict } else { Quotes::Lenient };
    let invalid_bytes =
        if reader.u8()? == 0 { InvalidBytes::Reject } else { InvalidBytes::Replace };
    let (skip, header_rows, footer) = (reader.varint()?, reader.varint()?, reader.varint()?);
    let count = reader.count(1)?;
    let nulls = (0..count).map(|_| reader.bytes().map(<[u8]>::to_vec)).collect::<Result<_>>()?;
    let label = read_text(reader)?;
    let said = if reader.u8()? == 0 { Said::Nobody } else { Said::User };
    let encoding = TextEncoding { encoding: Encoding::from_label(&label)?, said };
    let decimal = reader.u8()?;
    let [grouped, thousands] = reader.array()?;
    let thousands = (grouped != 0).then_some(thousands);
    let date = match read_text(reader)?.as_str() {
        "" => None,
        text => Some(DateFormat::parse(text).map_err(Error::Corrupt)?),
    };
    let fixed = match flags & FIXED {
        0 => None,
        _ => Some(FixedWidths::parse(&read_text(reader)?)?),
    };
    let dialect = Dialect {
        fixed,
        formats: Formats { decimal, thousands, date },
        delimiter,
        long_delimiter,
        quote,
        escape,
        header,
        nulls,
        skip,
        comment,
        trailing,
        line_end,
        header_rows,
        footer,
        policies: Policies { ragged, quotes, invalid_bytes },
        encoding,
    };
    dialect.check()?;
    Ok(dialect)
}
