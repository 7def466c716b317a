//! Times are counted in microseconds.
//!
//! The engine's own types of times count nanoseconds in 64 bits and end in the year 2262. A store holds the years 0001 to
//! 9999, so that a comparison with such a time fails or is wrong. Here, types that SQL names, functions and the types to
//! which a date and a timestamp are both brought have microseconds.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::functions::datetime::to_timestamp_seconds;
use datafusion::logical_expr::expr::{BinaryExpr, Cast, ScalarFunction};
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, cast};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::sqlparser::ast::{DataType as SqlType, ExactNumberInfo, TimezoneInfo};

use super::{refused, rewrite_expressions};
use crate::types::UTC;

/// TIMESTAMP.
pub(super) const TIMESTAMP: ArrowType = ArrowType::Timestamp(TimeUnit::Microsecond, None);

/// Digits of a second that are held.
const DIGITS: u64 = 6;

/// Bits of the largest FLOAT(n) that is a REAL.
const REAL_BITS: u64 = 24;

/// Gives the names of types their types.
#[derive(Debug)]
pub(super) struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        let micros = |zone| ArrowType::Timestamp(TimeUnit::Microsecond, zone);
        let data_type = match sql_type {
            SqlType::Timestamp(digits, zone) => {
                check_digits(sql_type, *digits)?;
                match zone {
                    TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => micros(None),
                    TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => micros(Some(UTC.into())),
                }
            }
            SqlType::Datetime(digits) => {
                check_digits(sql_type, *digits)?;
                micros(None)
            }
            SqlType::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
                check_digits(sql_type, *digits)?;
                ArrowType::Time64(TimeUnit::Microsecond)
            }
            // As CREATE TABLE has it.
            SqlType::Float(ExactNumberInfo::Precision(bits)) if *bits <= REAL_BITS => {
                ArrowType::Float32
            }
            SqlType::Float(_) => ArrowType::Float64,
            SqlType::Decimal(ExactNumberInfo::None)
            | SqlType::Numeric(ExactNumberInfo::None)
            | SqlType::Dec(ExactNumberInfo::None) => {
                return Err(refused(format!(
                    "{sql_type} needs its digits: {sql_type}(38, 10) has 10 after the point"
                )));
            }
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(Field::new("", data_type, true))))
    }
}

fn check_digits(sql_type: &SqlType, digits: Option<u64>) -> Result<()> {
    match digits {
        None | Some(DIGITS) => Ok(()),
        Some(_) => Err(refused(format!(
            "{sql_type} is not supported: times have {DIGITS} digits of a second (date_trunc leaves some out)"
        ))),
    }
}

/// Functions and comparisons, before operands are made of one type.
#[derive(Debug)]
pub(super) struct BeforeTypes;

impl AnalyzerRule for BeforeTypes {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_expressions(plan, &|expr, schema| before(expr, schema, config))
    }

    fn name(&self) -> &str {
        "functions_in_microseconds"
    }
}

fn before(mut expr: Expr, schema: &DFSchema, config: &ConfigOptions) -> Result<Transformed<Expr>> {
    if let Expr::ScalarFunction(function) = expr {
        return function_in_micros(function, schema, config);
    }
    if let Expr::WindowFunction(window) = &mut expr {
        // The engine has no frames over times of day.
        for key in &mut window.params.order_by {
            if let Ok(ArrowType::Time64(_)) = key.expr.get_type(schema) {
                key.expr = cast(std::mem::take(&mut key.expr), ArrowType::Int64);
            }
        }
        return Ok(Transformed::yes(expr));
    }
    let mut operands: Vec<&mut Expr> = match &mut expr {
        Expr::BinaryExpr(e) if e.op.supports_propagation() => vec![&mut e.left, &mut e.right],
        Expr::Between(e) => vec![&mut e.expr, &mut e.low, &mut e.high],
        Expr::InList(e) => std::iter::once(e.expr.as_mut()).chain(&mut e.list).collect(),
        _ => return Ok(Transformed::no(expr)),
    };
    // What is in error has no type, as planning will tell.
    let types: Vec<_> = operands.iter().map(|e| e.get_type(schema).ok()).collect();
    let zone = types.iter().find_map(|t| match t {
        Some(ArrowType::Timestamp(_, zone)) => Some(zone.clone()),
        _ => None,
    });
    let Some(zone) = zone else { return Ok(Transformed::no(expr)) };
    let instant = ArrowType::Timestamp(TimeUnit::Microsecond, zone);
    let mut changed = false;
    for (operand, data_type) in operands.iter_mut().zip(types) {
        if data_type == Some(ArrowType::Date32) {
            let date = std::mem::take(*operand);
            **operand = cast(date, instant.clone());
            changed = true;
        }
    }
    Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

fn function_in_micros(
    function: ScalarFunction,
    schema: &DFSchema,
    config: &ConfigOptions,
) -> Result<Transformed<Expr>> {
    let function = match (function.name(), function.args.as_slice()) {
        ("to_timestamp", [argument]) => match argument.get_type(schema) {
            Ok(t) if t.is_integer() => {
                ScalarFunction { func: to_timestamp_seconds(config), args: function.args }
            }
            // The function reads nanoseconds.
            Ok(ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View) => {
                return Ok(Transformed::yes(cast(argument.clone(), TIMESTAMP)));
            }
            _ => function,
        },
        _ => function,
    };
    let expr = Expr::ScalarFunction(function);
    match expr.get_type(schema) {
        Ok(ArrowType::Timestamp(unit, zone)) if unit != TimeUnit::Microsecond => {
            Ok(Transformed::yes(cast(expr, ArrowType::Timestamp(TimeUnit::Microsecond, zone))))
        }
        Ok(ArrowType::Time64(TimeUnit::Nanosecond)) => {
            Ok(Transformed::yes(cast(expr, ArrowType::Time64(TimeUnit::Microsecond))))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

/// The types to which operands were brought.
#[derive(Debug)]
pub(super) struct AfterTypes;

impl AnalyzerRule for AfterTypes {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_expressions(plan, &|expr, _| after(expr))
    }

    fn name(&self) -> &str {
        "types_in_microseconds"
    }
}

/// Functions that give one of their arguments back.
pub(super) const CHOOSING: [&str; 6] = ["coalesce", "nvl", "nvl2", "nullif", "greatest", "least"];

fn after(expr: Expr) -> Result<Transformed<Expr>> {
    let has_choice = match &expr {
        Expr::BinaryExpr(BinaryExpr { .. })
        | Expr::Between(_)
        | Expr::InList(_)
        | Expr::Case(_)
        | Expr::Alias(_) => true,
        Expr::ScalarFunction(f) => CHOOSING.contains(&f.name()),
        _ => false,
    };
    if !has_choice {
        return Ok(Transformed::no(expr));
    }
    expr.map_children(|child| {
        Ok(match child {
            Expr::Cast(Cast { expr, field }) => match field.data_type() {
                ArrowType::Timestamp(TimeUnit::Nanosecond, zone) => Transformed::yes(cast(
                    *expr,
                    ArrowType::Timestamp(TimeUnit::Microsecond, zone.clone()),
                )),
                _ => Transformed::no(Expr::Cast(Cast { expr, field })),
            },
            Expr::Literal(ScalarValue::TimestampNanosecond(Some(nanos), zone), metadata)
                if nanos % 1_000 == 0 =>
            {
                let micros = ScalarValue::TimestampMicrosecond(Some(nanos / 1_000), zone);
                Transformed::yes(Expr::Literal(micros, metadata))
            }
            other => Transformed::no(other),
        })
    })
}
