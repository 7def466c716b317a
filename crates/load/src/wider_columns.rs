//! Types that inputs turned out to need, for who looks at the same inputs again.

use coload_ddl::Schema;
use coload_source::ColumnForms;
use coload_types::{Column, DataType, Result};

use crate::request::LoadRequest;

/// Columns that became wider, by their names, with what their fields have in common.
#[derive(Debug, Clone, Default)]
pub struct WiderColumns(Vec<(String, DataType, ColumnForms)>);

impl WiderColumns {
    /// The columns of a request that have these names, with their types.
    pub(crate) fn of<'a>(request: &LoadRequest, names: impl Iterator<Item = &'a str>) -> Self {
        let columns = request.read_schema().columns();
        let forms = request.inferred.as_deref().unwrap_or_default();
        let found = names.filter_map(|name| {
            let at = columns.iter().position(|column| column.name == name)?;
            Some((name.to_owned(), columns[at].data_type, *forms.get(at)?))
        });
        WiderColumns(found.collect())
    }

    /// The same with others, which take the place of those of their names.
    pub fn merge(&mut self, others: WiderColumns) {
        self.0.retain(|(name, ..)| others.0.iter().all(|(other, ..)| other != name));
        self.0.extend(others.0);
    }

    /// Gives the columns of a request these types, but for those whose types are given.
    ///
    /// # Errors
    /// None that a schema with the same names could have.
    pub fn apply(&self, request: &mut LoadRequest) -> Result<()> {
        let Some(mut forms) = request.inferred.clone() else { return Ok(()) };
        let mut columns = request.read_schema().columns().to_vec();
        for (column, forms) in columns.iter_mut().zip(&mut forms) {
            let found = self.0.iter().find(|(name, ..)| *name == column.name);
            if let Some((_, data_type, wider)) = found.filter(|_| !forms.is_given()) {
                *column = Column { data_type: *data_type, ..column.clone() };
                *forms = *wider;
            }
        }
        request.set_read_schema(Schema::new(columns)?)?;
        request.inferred = Some(forms);
        Ok(())
    }
}
