//! Some columns of a load, with nothing else read.

use std::sync::Arc;

use coload_ddl::Schema;
use coload_source::InputFields;
use coload_types::{Error, Result};
use coload_wire::{ColumnFrom, Derivation, FieldMap, FieldsByInput};

use crate::request::LoadRequest;

/// The load of these columns of the table only, in this order. Fields that none of them is made of are not read, and so
/// not looked at either; of columns that no field tells the first field that can be read is, for its records are the rows.
///
/// # Errors
/// `Invalid` without columns, for one that is not there or that is refused, and for a load with a program, which looks at
/// others.
pub fn project(request: &LoadRequest, columns: &[usize]) -> Result<LoadRequest> {
    if request.program.is_some() {
        return Err(Error::Invalid("columns of a load with --where or --select".into()));
    }
    let all = request.schema.columns();
    let column = |column: &usize| {
        all.get(*column)
            .cloned()
            .ok_or_else(|| Error::Invalid(format!("column {column} of {}", request.table)))
    };
    let schema = Schema::new(columns.iter().map(column).collect::<Result<_>>()?)?;
    let from_of = |column: &usize| match &request.derivation {
        Some(derivation) => derivation.columns[*column].clone(),
        None => ColumnFrom::Read(*column),
    };
    let mut from: Vec<ColumnFrom> = columns.iter().map(from_of).collect();
    let mut read = Vec::new();
    for column in &mut from {
        if let ColumnFrom::Read(index) = column {
            read.push(*index);
            *index = read.len() - 1;
        }
    }
    let all_are_read = read.len() == from.len();
    let refused = |column: usize| request.refused.iter().find(|refused| refused.column == column);
    if read.is_empty() {
        let readable = (0..request.read_schema().len()).find(|column| refused(*column).is_none());
        read.push(readable.unwrap_or(0));
    }
    if let Some(refused) = read.iter().find_map(|column| refused(*column)) {
        return Err(Error::Invalid(refused.text.clone()));
    }
    let of_read = request.read_schema().columns();
    let read_schema = Schema::new(read.iter().map(|index| of_read[*index].clone()).collect())?;
    let forms = request.inferred.as_ref();
    let mut projected = LoadRequest {
        schema,
        derivation: (!all_are_read).then_some(Derivation { read: read_schema, columns: from }),
        inferred: forms.map(|forms| read.iter().map(|index| forms[*index]).collect()),
        refused: Vec::new(),
        ..request.clone()
    };
    set_fields(&mut projected, request.fields_of_inputs().of_columns(&read));
    Ok(projected)
}

/// Says which fields the columns are that are read.
fn set_fields(request: &mut LoadRequest, mut fields: FieldsByInput) {
    match (&request.fields_by_input, fields.ways.pop()) {
        (None, Some(InputFields { count, of_column })) => {
            let of_column = of_column.into_iter().flatten().collect();
            request.fields = Some(FieldMap { count, of_column });
        }
        (_, last) => {
            fields.ways.extend(last);
            request.fields_by_input = Some(Arc::new(fields));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use coload_ddl::parse_columns;
    use coload_source::{Dialect, InputFile};
    use coload_types::Value;

    use super::*;
    use crate::request::RefusedColumn;

    fn request() -> LoadRequest {
        let schema = parse_columns("a BIGINT, b VARCHAR, c DATE").unwrap();
        LoadRequest::new(Vec::<InputFile>::new(), "t", schema, Dialect::default())
    }

    #[test]
    fn columns_are_the_fields_that_they_were() {
        let projected = project(&request(), &[2, 0]).unwrap();
        assert_eq!(projected.schema.columns()[0].name, "c");
        let fields = projected.fields.unwrap();
        assert_eq!((fields.count, fields.of_column), (3, vec![2, 0]));
        assert!(projected.derivation.is_none());
    }

    #[test]
    fn columns_that_are_made_stay_and_others_are_not_read() {
        let mut request = request();
        let read = parse_columns("a BIGINT, b VARCHAR").unwrap();
        let day = ColumnFrom::Constant(Some(Value::Int(1)));
        let columns = vec![ColumnFrom::Read(0), ColumnFrom::Read(1), day.clone()];
        request.derivation = Some(Derivation { read, columns });
        let projected = project(&request, &[2, 1]).unwrap();
        let derivation = projected.derivation.clone().unwrap();
        assert_eq!(derivation.columns, [day.clone(), ColumnFrom::Read(0)]);
        assert_eq!(derivation.read.columns()[0].name, "b");
        assert_eq!(projected.fields.unwrap().of_column, [1]);
        // Records are counted by the first field.
        let only_made = project(&request, &[2]).unwrap();
        assert_eq!(only_made.derivation.unwrap().read.columns()[0].name, "a");
        assert_eq!(only_made.schema.len(), 1);
    }

    #[test]
    fn columns_that_no_column_holds_are_refused_and_count_no_records() {
        let mut request = request();
        let text = "field a is INTERVAL".to_owned();
        request.refused = vec![RefusedColumn { column: 0, kind: "INTERVAL".to_owned(), text }];
        assert!(project(&request, &[0, 1]).unwrap_err().to_string().contains("a is INTERVAL"));
        assert!(project(&request, &[2, 1]).unwrap().refused.is_empty());
        let (read, day) = (request.schema.clone(), ColumnFrom::Constant(Some(Value::Int(1))));
        let columns = vec![ColumnFrom::Read(0), ColumnFrom::Read(1), day];
        request.derivation = Some(Derivation { read, columns });
        let only_made = project(&request, &[2]).unwrap();
        assert_eq!(only_made.derivation.unwrap().read.columns()[0].name, "b");
    }

    #[test]
    fn columns_that_are_not_there_are_refused() {
        assert!(project(&request(), &[3]).is_err());
        assert!(project(&request(), &[]).is_err());
    }
}
