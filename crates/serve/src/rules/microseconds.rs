//! Times are counted in microseconds.
//!
//! The engine's own types of times count nanoseconds in 64 bits and end in the year 2262. A store holds the years 0001 to
//! 9999, so that a comparison with such a time fails or is wrong. Here, types that SQL names, functions and the types to
//! which a date and a timestamp are both brought have microseconds.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType as ArrowType, Field, FieldRef, Float64Type, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions::datetime::to_timestamp_seconds;
use datafusion::logical_expr::expr::{BinaryExpr, Cast, ScalarFunction};
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits, cast,
};
use datafusion::sql::sqlparser::ast::{DataType as SqlType, ExactNumberInfo, TimezoneInfo};

use super::calendar::{check_years, makes_times, within_years};
use super::refused;
use super::unary::Unary;

use crate::types::UTC;

/// Arrow's type of TIMESTAMP.
pub(super) const TIMESTAMP: ArrowType = ArrowType::Timestamp(TimeUnit::Microsecond, None);

const SECOND_MICROS: f64 = 1e6;

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
pub(super) fn before(
    mut expr: Expr,
    schema: &DFSchema,
    config: &ConfigOptions,
) -> Result<Transformed<Expr>> {
    if let Expr::ScalarFunction(function) = expr {
        return function_in_micros(function, schema, config);
    }
    // AT TIME ZONE: no type that SQL names has nanoseconds.
    if let Expr::Cast(Cast { expr: inner, field }) = &mut expr
        && let ArrowType::Timestamp(TimeUnit::Nanosecond, zone) = field.data_type()
    {
        let micros = ArrowType::Timestamp(TimeUnit::Microsecond, zone.clone());
        return Ok(Transformed::yes(within_years(cast(std::mem::take(inner.as_mut()), micros))));
    }
    if let Expr::WindowFunction(window) = &mut expr {
        let has_distances = has_distances(&window.params.window_frame);
        for key in &mut window.params.order_by {
            let wider = match key.expr.get_type(schema) {
                // The engine has no frames over times of day.
                Ok(ArrowType::Time64(_)) => ArrowType::Int64,
                // The ends of a frame are numbers of this type, and may not fit the key's.
                Ok(t) if has_distances && t.is_integer() => WIDEST,
                _ => continue,
            };
            key.expr = cast(std::mem::take(&mut key.expr), wider);
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

/// All integers, and what is before and after them.
const WIDEST: ArrowType = ArrowType::Decimal128(DECIMAL128_MAX_PRECISION, 0);

/// Whether a frame goes by distances from the key of a row.
fn has_distances(frame: &WindowFrame) -> bool {
    let is_distance = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(value) | WindowFrameBound::Following(value) => !value.is_null(),
        WindowFrameBound::CurrentRow => false,
    };
    frame.units == WindowFrameUnits::Range
        && (is_distance(&frame.start_bound) || is_distance(&frame.end_bound))
}

fn function_in_micros(
    function: ScalarFunction,
    schema: &DFSchema,
    config: &ConfigOptions,
) -> Result<Transformed<Expr>> {
    let mut has_micros = false;
    let function = match (function.name(), function.args.as_slice()) {
        ("to_timestamp", [argument]) => match argument.get_type(schema) {
            Ok(t) if t.is_integer() => {
                ScalarFunction { func: to_timestamp_seconds(config), args: function.args }
            }
            // The function reads nanoseconds.
            Ok(ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View) => {
                let instant = ArrowType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
                let read = cast(argument.clone(), instant);
                return Ok(Transformed::yes(cast(read, TIMESTAMP)));
            }
            Ok(t) if t.is_floating() || matches!(t, ArrowType::Decimal128(..)) => {
                let seconds = cast(argument.clone(), ArrowType::Float64);
                let instant = OF_SECONDS.of(seconds);
                return Ok(Transformed::yes(instant));
            }
            _ => function,
        },
        ("date_trunc", [_, time]) if matches!(time.get_type(schema), Ok(ArrowType::Date32)) => {
            let mut function = function;
            let date = std::mem::take(&mut function.args[1]);
            function.args[1] = cast(date, TIMESTAMP);
            has_micros = true;
            function
        }
        _ => function,
    };
    let is_made = makes_times(function.name());
    let expr = Expr::ScalarFunction(function);
    match expr.get_type(schema) {
        Ok(ArrowType::Timestamp(unit, zone)) if unit != TimeUnit::Microsecond => {
            let micros = cast(expr, ArrowType::Timestamp(TimeUnit::Microsecond, zone));
            Ok(Transformed::yes(within_years(micros)))
        }
        Ok(ArrowType::Timestamp(..) | ArrowType::Date32) if is_made => {
            Ok(Transformed::yes(within_years(expr)))
        }
        Ok(ArrowType::Time64(TimeUnit::Nanosecond)) => {
            Ok(Transformed::yes(cast(expr, ArrowType::Time64(TimeUnit::Microsecond))))
        }
        _ => Ok(Transformed::new_transformed(expr, has_micros)),
    }
}

/// Functions that give one of their arguments back.
pub(super) const CHOOSING: [&str; 6] = ["coalesce", "nvl", "nvl2", "nullif", "greatest", "least"];

/// A date and a timestamp that are one row of EXCEPT or INTERSECT, or one key of USING.
pub(super) fn keys_in_micros(plan: LogicalPlan) -> Transformed<LogicalPlan> {
    let LogicalPlan::Join(mut join) = plan else { return Transformed::no(plan) };
    for (left, right) in &mut join.on {
        for key in [left, right] {
            *key = in_micros(std::mem::take(key)).data;
        }
    }
    Transformed::yes(LogicalPlan::Join(join))
}

/// The types to which operands were brought.
pub(super) fn after(expr: Expr) -> Result<Transformed<Expr>> {
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
    expr.map_children(|child| Ok(in_micros(child)))
}

/// What the engine brought to nanoseconds.
fn in_micros(expr: Expr) -> Transformed<Expr> {
    match expr {
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
    }
}

/// Seconds since 1970 as a TIMESTAMP. The engine's gives the last time it knows for all that are too many.
static OF_SECONDS: Unary =
    Unary { name: "to_timestamp", is_hidden: false, returns: |_| TIMESTAMP, map: of_seconds };

fn of_seconds(array: &ArrayRef) -> Result<ArrayRef> {
    let seconds = array.as_primitive::<Float64Type>();
    let instants = seconds.try_unary::<_, TimestampMicrosecondType, DataFusionError>(|v| {
        let micros = (v * SECOND_MICROS).round_ties_even();
        // The first float that is no 64-bit integer; a NaN is not below it either.
        if micros.abs() < 2f64.powi(63) {
            Ok(micros as i64)
        } else {
            Err(DataFusionError::Execution(format!("no time is {v} seconds after 1970")))
        }
    })?;
    check_years(&instants)?;
    Ok(Arc::new(instants))
}
