//! Rows of an answer, as blocks.

use coload_load::{TypedBlock, TypedReader};
use coload_types::{Error, Result};

use super::connection::SqlServerConnection;
use super::errors::world;
use super::tds::{ColumnInfo, Token};
use super::values::push;
use crate::read::{BLOCK_BYTES, ColumnBuilder, Lent, ReadAs, ReadRows, too_large};

/// Reads the rows of an answer.
pub struct RowReader {
    /// The connection.
    pub lent: Lent<SqlServerConnection>,
    /// Columns of the answer.
    pub columns: Vec<ColumnInfo>,
    /// Where in a block the values of each column go.
    pub places: Vec<Vec<usize>>,
    /// What the columns of a block are read as.
    pub kinds: Vec<ReadAs>,
    /// Bytes that a row may take.
    pub most: u64,
    /// Whether all were read.
    pub is_over: bool,
}

impl TypedReader for RowReader {
    fn next(&mut self) -> Result<Option<Box<dyn TypedBlock>>> {
        let Some(on) = self.lent.get().filter(|_| !self.is_over) else { return Ok(None) };
        let mut block: Vec<ColumnBuilder> =
            self.kinds.iter().map(|kind| ColumnBuilder::new(*kind)).collect();
        let (mut rows, mut bytes) = (0, 0);
        let mut value = Vec::new();
        while bytes < BLOCK_BYTES {
            match on.session.next()? {
                Token::Row => {}
                Token::Error(error) => return Err(world(&error)),
                Token::Done(_) | Token::Returned(_) => continue,
                Token::Columns(_) => {
                    return Err(Error::Invalid("--query has more than one answer".to_owned()));
                }
                Token::End => {
                    self.is_over = true;
                    break;
                }
            }
            let before = bytes;
            for (at, column) in self.columns.iter().enumerate() {
                let is_given = on.session.value(&column.type_info, at, (&mut value, self.most))?;
                for place in &self.places[at] {
                    match is_given {
                        true => bytes += push(&mut block[*place], &column.type_info, &value)?,
                        false => {
                            block[*place].push_null();
                            bytes += 8;
                        }
                    }
                }
                // Asked of each value: many that are just small enough are a row that is not.
                let row_bytes = (bytes - before) as u64;
                if row_bytes > self.most {
                    return Err(too_large("a row", row_bytes, self.most));
                }
            }
            rows += 1;
            // A row of no fields takes some, too.
            bytes = bytes.max(before + 1);
        }
        if self.is_over {
            self.lent.give_back();
        }
        let block = ReadRows::new(block, rows, bytes);
        Ok((rows > 0).then(|| Box::new(block) as Box<dyn TypedBlock>))
    }
}
