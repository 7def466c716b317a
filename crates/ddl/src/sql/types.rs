//! Type names, with their synonyms in other systems.

use coload_types::{DataType, ElementType, Result};

use super::parser::Parser;

/// DECIMAL without precision, as DuckDB has it.
const DECIMAL_DEFAULT: (u8, u8) = (18, 3);
/// FLOAT(n) of up to this many bits is REAL.
const REAL_BITS_MAX: u32 = 24;
/// Digits of a second's fraction that are kept.
const FRACTION_DIGITS_MAX: u32 = 6;

/// Why there is no list of elements of a type.
pub fn list_refused(element: DataType, column: &str) -> String {
    format!(
        "{element}[], the type of column {column}, is not stored: lists are of numbers, truths, dates, times, UUIDs and \
         VARCHAR without a length (VARCHAR takes any list as JSON)"
    )
}

impl Parser<'_> {
    /// A type, with what belongs to it in parentheses and in further words.
    pub fn data_type(&mut self, column: &str) -> Result<DataType> {
        let data_type = self.element_type(column)?;
        if !self.take_list()? {
            return Ok(data_type);
        }
        let Some(element) = ElementType::of(data_type) else {
            return Err(self.error_before(&list_refused(data_type, column)));
        };
        let list = DataType::List(element);
        match self.take_list()? {
            true => Err(self.error_before(&list_refused(list, column))),
            false => Ok(list),
        }
    }

    /// `[]` or ARRAY behind a type, with a length that means nothing.
    fn take_list(&mut self) -> Result<bool> {
        let is_array = self.take_word("ARRAY");
        if !self.take_symbol('[') {
            return Ok(is_array);
        }
        if !self.take_symbol(']') {
            self.count("] behind the type of a list's elements")?;
            self.symbol(']', "]")?;
        }
        Ok(true)
    }

    /// A type that is none of a list.
    fn element_type(&mut self, column: &str) -> Result<DataType> {
        let Some(word) = self.word() else {
            return Err(self.expected(&format!("a type for column {column}")));
        };
        Ok(match word.to_uppercase().as_str() {
            "BOOLEAN" | "BOOL" => DataType::Boolean,
            "SMALLINT" | "INT2" | "TINYINT" | "UTINYINT" => self.integer(DataType::SmallInt)?,
            "INTEGER" | "INT" | "INT4" | "MEDIUMINT" | "USMALLINT" => {
                self.integer(DataType::Integer)?
            }
            "BIGINT" | "INT8" | "UINTEGER" => self.integer(DataType::BigInt)?,
            "UBIGINT" => DataType::decimal(20, 0)?,
            "DECIMAL" | "NUMERIC" | "DEC" | "NUMBER" => self.decimal()?,
            "REAL" | "FLOAT4" => DataType::Real,
            "FLOAT" => self.float()?,
            "DOUBLE" => {
                self.take_word("PRECISION");
                DataType::Double
            }
            "FLOAT8" => DataType::Double,
            "DATE" => DataType::Date,
            "TIME" => self.time()?,
            "TIMESTAMP" | "DATETIME" => self.timestamp()?,
            "TIMESTAMPTZ" => {
                self.fraction_digits()?;
                DataType::TimestampTz
            }
            "CHAR" | "CHARACTER" | "NCHAR" | "BPCHAR" => self.character()?,
            "VARCHAR" | "NVARCHAR" | "VARCHAR2" => DataType::Varchar(self.length()?),
            "TEXT" | "STRING" | "CLOB" | "TINYTEXT" | "MEDIUMTEXT" | "LONGTEXT" => {
                DataType::Varchar(self.length()?)
            }
            "BINARY" => {
                self.take_word("VARYING");
                DataType::Binary(self.length()?)
            }
            "VARBINARY" | "BYTEA" | "BLOB" | "TINYBLOB" | "MEDIUMBLOB" | "LONGBLOB" => {
                DataType::Binary(self.length()?)
            }
            "UUID" | "UNIQUEIDENTIFIER" => DataType::Uuid,
            _ => return Err(self.unknown_type(&word, column)),
        })
    }

    fn unknown_type(&self, word: &str, column: &str) -> coload_types::Error {
        self.error_before(&format!(
            "{word}, the type of column {column}, is not known: expected BOOLEAN, SMALLINT, INTEGER, \
             BIGINT, DECIMAL(p,s), REAL, DOUBLE, DATE, TIME, TIMESTAMP [WITH TIME ZONE], CHAR(n), \
             VARCHAR, BINARY, UUID or a list of one, as BIGINT[] (VARCHAR takes any text)"
        ))
    }

    /// An integer type, with the width that MySQL prints, which means nothing.
    fn integer(&mut self, data_type: DataType) -> Result<DataType> {
        self.parenthesised("a width")?;
        Ok(data_type)
    }

    fn decimal(&mut self) -> Result<DataType> {
        if !self.take_symbol('(') {
            return DataType::decimal(DECIMAL_DEFAULT.0, DECIMAL_DEFAULT.1);
        }
        let precision = self.count("the precision of DECIMAL, 1 to 38")?;
        let mut scale = 0;
        if self.take_symbol(',') {
            scale = self.count("the scale of DECIMAL")?;
        }
        let checked = match (u8::try_from(precision), u8::try_from(scale)) {
            (Ok(precision), Ok(scale)) => DataType::decimal(precision, scale).ok(),
            _ => None,
        };
        let Some(data_type) = checked else {
            return Err(self.error_before(&format!(
                "DECIMAL({precision},{scale}) is not a type: precision is 1 to 38, scale 0 to precision"
            )));
        };
        self.symbol(')', ") after the precision and scale")?;
        Ok(data_type)
    }

    /// FLOAT is DOUBLE unless its bits fit REAL: wider loses nothing.
    fn float(&mut self) -> Result<DataType> {
        Ok(match self.parenthesised("the bits of FLOAT")? {
            Some(bits) if bits <= REAL_BITS_MAX => DataType::Real,
            _ => DataType::Double,
        })
    }

    fn time(&mut self) -> Result<DataType> {
        self.fraction_digits()?;
        if self.take_word("WITH") {
            return Err(self.error_before("TIME WITH TIME ZONE is not a type here: use TIME"));
        }
        if self.take_word("WITHOUT") {
            self.time_zone()?;
        }
        Ok(DataType::Time)
    }

    fn timestamp(&mut self) -> Result<DataType> {
        self.fraction_digits()?;
        if self.take_word("WITH") {
            self.time_zone()?;
            return Ok(DataType::TimestampTz);
        }
        if self.take_word("WITHOUT") {
            self.time_zone()?;
        }
        Ok(DataType::Timestamp)
    }

    fn time_zone(&mut self) -> Result<()> {
        self.keyword("TIME", "TIME ZONE")?;
        self.keyword("ZONE", "TIME ZONE")
    }

    /// `(n)` after a time type: microseconds are kept whatever it says.
    fn fraction_digits(&mut self) -> Result<()> {
        match self.parenthesised("the digits of a second's fraction")? {
            Some(digits) if digits > FRACTION_DIGITS_MAX => Err(self.error_before(&format!(
                "{digits} digits of a second's fraction: at most {FRACTION_DIGITS_MAX} are kept"
            ))),
            _ => Ok(()),
        }
    }

    /// CHAR is CHAR(1), as in the standard; CHARACTER VARYING is VARCHAR.
    fn character(&mut self) -> Result<DataType> {
        if self.take_word("VARYING") {
            return Ok(DataType::Varchar(self.length()?));
        }
        Ok(DataType::Char(self.length()?.unwrap_or(1)))
    }

    /// `(n)`, or nothing or `(MAX)` for no limit.
    fn length(&mut self) -> Result<Option<u32>> {
        let Some(length) = self.parenthesised("a length")? else {
            return Ok(None);
        };
        match length {
            0 => Err(self.error_before("a length is at least 1")),
            u32::MAX => Ok(None),
            _ => Ok(Some(length)),
        }
    }

    /// `(n)` if it is there; MAX is the greatest number.
    fn parenthesised(&mut self, expected: &str) -> Result<Option<u32>> {
        if !self.take_symbol('(') {
            return Ok(None);
        }
        let count = if self.take_word("MAX") { u32::MAX } else { self.count(expected)? };
        self.symbol(')', ")")?;
        Ok(Some(count))
    }
}
