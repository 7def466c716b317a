//! Values for the parameters of a statement.

use std::sync::Arc;

use coload_format::{Error, Result};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema as ArrowSchema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::ParamValues;
use datafusion::logical_expr::LogicalPlan;
use datafusion::scalar::ScalarValue;

use super::placeholders::PARAMETERS_MAX;
use crate::error::from_datafusion;

/// One value for each parameter of a statement, in order.
#[derive(Debug, Clone, Default)]
pub struct Parameters {
    values: Vec<ScalarValue>,
}

impl Parameters {
    /// A row of a batch: a column for each parameter.
    ///
    /// # Errors
    /// `Invalid` when there is no such row, or a column has a type without values.
    pub fn of_row(batch: &RecordBatch, row: usize) -> Result<Self> {
        if row >= batch.num_rows() {
            return Err(Error::Invalid("parameters without a row of values".into()));
        }
        let columns = batch.columns().iter();
        let values = columns
            .map(|array| ScalarValue::try_from_array(array, row).map_err(from_datafusion))
            .collect::<Result<_>>()?;
        Ok(Parameters { values })
    }

    /// The plan with its parameters' values; `None` when it has parameters and there are no values.
    pub(crate) fn bind(
        &self,
        plan: &LogicalPlan,
        fields: &ArrowSchema,
    ) -> Result<Option<LogicalPlan>> {
        let wanted = fields.fields().len();
        if self.values.is_empty() && wanted > 0 {
            return Ok(None);
        }
        if self.values.len() != wanted {
            return Err(Error::Invalid(format!(
                "the statement has {wanted} parameters, and {} values were given",
                self.values.len()
            )));
        }
        if wanted == 0 {
            return Ok(Some(plan.clone()));
        }
        let values = ParamValues::from(self.values.clone());
        plan.clone().with_param_values(values).map(Some).map_err(from_datafusion)
    }
}

/// A field for each parameter of a plan, named `$1` and so on.
///
/// # Errors
/// `Invalid` when a number is left out.
pub(crate) fn fields_of(plan: &LogicalPlan) -> Result<ArrowSchema> {
    let known = plan.get_parameter_fields().map_err(from_datafusion)?;
    let number = |name: &str| name.strip_prefix('$').and_then(|n| n.parse::<usize>().ok());
    let count = known.keys().filter_map(|name| number(name)).max().unwrap_or(0);
    if count > PARAMETERS_MAX || known.len() != count {
        return Err(Error::Invalid("parameters are numbered from $1 on, without a gap".into()));
    }
    let field = |n: usize| {
        let name = format!("${n}");
        let asked = known.get(&name).and_then(Option::as_ref).map(|f| f.data_type().clone());
        let data_type = asked.filter(|t| *t != ArrowType::Null).unwrap_or(ArrowType::Utf8);
        Arc::new(Field::new(name, data_type, true))
    };
    Ok(ArrowSchema::new((1..=count).map(field).collect::<Vec<_>>()))
}
