//! `||` as a function, which is bounded as the others are; and long literals, which are not copied for each row.
//!
//! The engine makes a text of a literal by copying it for each row of a batch, and `||` makes its result in one step. A
//! literal of 500 KB would so become 4 GB. As a view, it stands once, and each row points to it.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray, StringViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Values, Volatility,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr as Physical, Column};

use super::narrow::is_copied;
use super::rows_share;

/// Literals from this length on are views, and counted: shorter ones are most of them, and each has a few hundred bytes at most.
const LONG_LITERAL: usize = 256;

/// Rows of a batch where joins copy lists and aggregated texts.
const COPIED_ROWS: usize = 256;

/// Puts a function in the place of `||`, and views in that of long literals.
#[derive(Debug)]
pub(super) struct Joining {
    pub function: Arc<ScalarUDF>,
}

impl FunctionRewrite for Joining {
    fn name(&self) -> &str {
        "joining_of_texts"
    }

    fn rewrite(&self, expr: Expr, _: &DFSchema, _: &ConfigOptions) -> Result<Transformed<Expr>> {
        Ok(match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) => {
                // One call for a chain: each level would be typed again at all levels above it.
                let mut parts = match *left {
                    Expr::ScalarFunction(call) if Arc::ptr_eq(&call.func, &self.function) => {
                        call.args
                    }
                    other => vec![other],
                };
                parts.push(*right);
                let call = ScalarFunction::new_udf(Arc::clone(&self.function), parts);
                Transformed::yes(Expr::ScalarFunction(call))
            }
            Expr::Literal(ScalarValue::Utf8(Some(text)), metadata)
                if text.len() >= LONG_LITERAL =>
            {
                Transformed::yes(Expr::Literal(ScalarValue::Utf8View(Some(text)), metadata))
            }
            other => Transformed::no(other),
        })
    }
}

/// VALUES with long literals as they were written: none is copied for rows, and rows of one column have one type.
pub(crate) fn texts_of_values(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Values(Values { schema, mut values }) = plan else {
        return Ok(Transformed::no(plan));
    };
    let as_written = |part| {
        Ok(match part {
            Expr::Literal(ScalarValue::Utf8View(text), metadata) => {
                Transformed::yes(Expr::Literal(ScalarValue::Utf8(text), metadata))
            }
            other => Transformed::no(other),
        })
    };
    let mut changed = false;
    for (column, field) in schema.fields().iter().enumerate() {
        if *field.data_type() != DataType::Utf8 {
            continue;
        }
        for row in &mut values {
            let value = std::mem::take(&mut row[column]).transform_up(as_written)?;
            changed |= value.transformed;
            row[column] = value.data;
        }
    }
    let plan = LogicalPlan::Values(Values { schema, values });
    Ok(if changed { Transformed::yes(plan) } else { Transformed::no(plan) })
}

/// `||` of the engine, of two values or of a chain of them.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Join {
    signature: Signature,
}

impl Default for Join {
    fn default() -> Self {
        Join { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Join {
    fn name(&self) -> &str {
        "||"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(chained(types)?.0)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(chained(types)?.1)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let joined = match args.return_field.data_type() {
            text @ (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => {
                let parts = args.args.iter().map(Part::of).collect::<Result<Vec<_>>>()?;
                cast(&join_texts(&parts, rows), text)?
            }
            // Of views of bytes the engine joins two to bytes, and says that it joins them to a view.
            other => cast(&join_in_turn(&args.args, rows)?, other)?,
        };
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&joined, 0)?),
            false => ColumnarValue::Array(joined),
        })
    }
}

/// The types that the values of a chain are brought to, and that of their join: those that the engine gives when they are
/// joined one after the other.
fn chained(types: &[DataType]) -> Result<(Vec<DataType>, DataType)> {
    let [first, second, ..] = types else {
        return datafusion::common::plan_err!("|| stands between two texts");
    };
    let (first, _) =
        BinaryTypeCoercer::new(first, &Operator::StringConcat, second).get_input_types()?;
    let (mut inputs, mut joined) = (vec![first.clone()], first);
    for right in &types[1..] {
        let coercer = BinaryTypeCoercer::new(&joined, &Operator::StringConcat, right);
        let (_, right) = coercer.get_input_types()?;
        let next = coercer.get_result_type()?;
        inputs.push(right);
        joined = next;
    }
    Ok((inputs, joined))
}

/// A value of a chain: of all rows, or of each.
enum Part {
    Same(Option<String>),
    Each(StringViewArray),
}

impl Part {
    fn of(value: &ColumnarValue) -> Result<Self> {
        let text = value.cast_to(&DataType::Utf8View, None)?;
        Ok(match text {
            ColumnarValue::Scalar(text) => {
                Part::Same(text.try_as_str().flatten().map(str::to_owned))
            }
            ColumnarValue::Array(texts) => Part::Each(texts.as_string_view().clone()),
        })
    }

    fn at(&self, row: usize) -> Option<&str> {
        match self {
            Part::Same(text) => text.as_deref(),
            Part::Each(texts) => texts.is_valid(row).then(|| texts.value(row)),
        }
    }
}

/// Texts one behind the other in each row; NULL where one is.
fn join_texts(parts: &[Part], rows: usize) -> ArrayRef {
    let mut out = StringViewBuilder::with_capacity(rows);
    let mut text = String::new();
    for row in 0..rows {
        text.clear();
        let is_whole = parts.iter().all(|part| match part.at(row) {
            Some(part) => {
                text.push_str(part);
                true
            }
            None => false,
        });
        match is_whole {
            true => out.append_value(&text),
            false => out.append_null(),
        }
    }
    Arc::new(out.finish())
}

/// Other values by the engine's operator.
fn join_in_turn(values: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
    let mut arrays = values.iter().map(|value| value.to_array(rows));
    let Some(first) = arrays.next() else {
        return datafusion::common::internal_err!("|| of nothing");
    };
    let side = |at: usize| Arc::new(Column::new(&at.to_string(), at)) as Arc<dyn PhysicalExpr>;
    let joining = Physical::new(side(0), Operator::StringConcat, side(1));
    let mut joined = first?;
    for right in arrays {
        let pair = vec![joined, right?];
        let fields = pair.iter().enumerate();
        let fields = fields.map(|(i, a)| Field::new(i.to_string(), a.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(schema, pair, &options)?;
        joined = joining.evaluate(&batch)?.into_array(rows)?;
    }
    Ok(joined)
}

/// Rows of a batch of a statement: fewer than usual where it has so many columns, or literals so long, that functions of
/// them would be.
pub(crate) fn batch_rows(plan: &LogicalPlan, usual: usize, memory: usize) -> Result<usize> {
    let (mut literals, mut widest, mut usual) = (0, 0, usual.max(1));
    plan.apply_with_subqueries(|node| {
        let fields = node.schema().fields().iter();
        widest = widest.max(fields.map(|field| width(field.data_type())).sum());
        let copied = |plan: &&LogicalPlan| {
            plan.schema().fields().iter().any(|f| is_aggregated(f.data_type()))
        };
        if matches!(node, LogicalPlan::Join(_)) && node.inputs().iter().any(copied) {
            usual = usual.min(COPIED_ROWS);
        }
        // Values are rows, each there once.
        if !matches!(node, LogicalPlan::Values(_)) {
            node.apply_expressions(|expr| {
                expr.apply(|part| {
                    if let Expr::Literal(value, _) = part {
                        let text = value.try_as_str().flatten().map_or(0, str::len);
                        literals += if text >= LONG_LITERAL { text } else { 0 };
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let rows = rows_share(memory).checked_div(literals + widest);
    Ok(rows.map_or(usual, |rows| rows.clamp(1, usual)))
}

/// Whether a type is one of `string_agg` or `array_agg`.
fn is_aggregated(data_type: &DataType) -> bool {
    is_copied(data_type) && !matches!(data_type, DataType::Utf8 | DataType::Binary)
}

/// Bytes that a column takes in each row, long texts left out.
fn width(data_type: &DataType) -> usize {
    /// A view, or a short text.
    const OTHERS: usize = 16;
    data_type.primitive_width().unwrap_or(OTHERS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use datafusion::logical_expr::{LogicalPlanBuilder, lit};

    use super::*;

    #[test]
    fn batches_have_few_rows_where_rows_are_long() {
        let rows = |exprs: Vec<Expr>| {
            let plan = LogicalPlanBuilder::empty(true).project(exprs).unwrap().build().unwrap();
            batch_rows(&plan, 8_192, 64 << 20).unwrap()
        };
        assert_eq!(rows(vec![lit(1), lit("short")]), 8_192);
        assert_eq!(rows(vec![lit("x".repeat(1 << 19))]), 1);
        assert_eq!(rows(vec![lit("x".repeat(1 << 14))]), 63);
        let columns = |count: i64| (0..count).map(|i| lit(i).alias(i.to_string())).collect();
        assert_eq!(rows(columns(16)), 8_192);
        assert_eq!(rows(columns(1_024)), 128);
    }
}
