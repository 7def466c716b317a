//! Lists of a column as Arrow arrays, and back.
//!
//! Cost: each list is read anew, also where rows have the same code.

use std::sync::Arc;

use coload_ddl::CheckedColumn;
use coload_types::{
    Column, Element, ElementType, Error, Plain, Result, Strings, Values, elements_onto, put_element,
};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::Field;

use crate::arrays::array_of;
use crate::rows::ColumnRows;
use crate::types::arrow_type;

/// Lists that become an array.
#[derive(Debug)]
pub(crate) struct Lists {
    element: ElementType,
    items: Plain,
    ends: Vec<i32>,
    valid: Vec<bool>,
}

impl Lists {
    /// None so far.
    pub fn new(element: ElementType) -> Self {
        let items = Plain::empty(element.data_type().physical());
        Lists { element, items, ends: vec![0], valid: Vec::new() }
    }

    /// Appends a list; `None` is NULL.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are no such list, `Limit` over 2^31 elements.
    pub fn push(&mut self, list: Option<&[u8]>) -> Result<()> {
        self.valid.push(list.is_some());
        if let Some(list) = list {
            elements_onto(list, self.element, &mut self.items)?;
        }
        let end = i32::try_from(self.items.len()).map_err(|_| {
            Error::Limit("lists of one batch of rows have over 2^31 elements".to_owned())
        })?;
        self.ends.push(end);
        Ok(())
    }

    /// The array.
    ///
    /// # Errors
    /// `Corrupt` when the elements are not of their type.
    pub fn into_array(self) -> Result<ArrayRef> {
        let data_type = self.element.data_type();
        let items = array_of(CheckedColumn::Plain(&self.items), self.items.len(), data_type)?;
        let field = Arc::new(Field::new_list_field(arrow_type(data_type), true));
        let nulls = NullBuffer::from(self.valid);
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.ends));
        let array = ListArray::try_new(field, offsets, items, nulls);
        Ok(Arc::new(array.map_err(|e| Error::Corrupt(format!("lists: {e}")))?))
    }
}

/// Appends the lists of an array whose type is that of the column.
///
/// # Errors
/// `Invalid` when an element is none of its type.
pub(crate) fn append_lists(
    array: &ArrayRef,
    column: &Column,
    element: ElementType,
    out: &mut Strings,
) -> Result<()> {
    let array = array.as_list::<i32>();
    let offsets = array.value_offsets();
    let (first, last) = (offsets[0] as usize, offsets[array.len()] as usize);
    let items = Column { data_type: element.data_type(), nullable: true, ..column.clone() };
    let mut items = ColumnRows::new(&items);
    items.append(&array.values().slice(first, last - first))?;
    let items = items.into_plain();
    let mut list = Vec::new();
    for row in 0..array.len() {
        list.clear();
        if array.is_valid(row) {
            for item in offsets[row] as usize - first..offsets[row + 1] as usize - first {
                put_element(&mut list, element_at(&items, item).as_ref());
            }
        }
        if !out.has_room(list.len() as u64) {
            return Err(Error::Limit(
                "lists of one column in the rows of a page are over 4 GiB".into(),
            ));
        }
        out.push(&list);
    }
    Ok(())
}

/// A value of a column as an element of a list; `None` is NULL.
fn element_at(items: &Plain, item: usize) -> Option<Element<'_>> {
    if items.is_null(item) {
        return None;
    }
    Some(match &items.values {
        Values::Int(values) => Element::Int(values[item]),
        Values::Wide(values) => Element::Wide(values[item]),
        Values::Bytes(values) => Element::Bytes(values.get(item).into()),
    })
}
