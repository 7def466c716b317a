//! Expressions.

use coload_types::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, CaseWhen, CastKind, CeilFloorKind, DataType, DateTimeField,
    Expr, Interval, Subscript, TypedString, UnaryOperator, Value, ValueWithSpan,
};

use super::chain::are_subscripts;
use super::like::escape_by_backslash;
use super::types::{check_type, take_length};
use super::{CUBE_MAX, WORK_MAX, Walker, postgres, refuse};

impl Walker<'_> {
    pub(super) fn exprs(&mut self, exprs: &mut [Expr]) -> Result<()> {
        exprs.iter_mut().try_for_each(|expr| self.expr(expr))
    }

    fn optional(&mut self, expr: &mut Option<Box<Expr>>) -> Result<()> {
        expr.as_mut().map_or(Ok(()), |expr| self.expr(expr))
    }

    pub(super) fn expr(&mut self, expr: &mut Expr) -> Result<()> {
        postgres::meant(expr)?;
        self.chain(expr)?;
        self.work += self.inner;
        if self.work > WORK_MAX {
            return Err(Error::Limit(format!(
                "the expressions of the statement have more than {WORK_MAX} levels together"
            )));
        }
        self.inner += 1;
        let done = self.deeper(|walker| walker.expr_here(expr));
        self.inner -= 1;
        done
    }

    fn expr_here(&mut self, expr: &mut Expr) -> Result<()> {
        match expr {
            Expr::Identifier(name) => {
                self.column(name);
                Ok(())
            }
            Expr::CompoundIdentifier(names) => {
                names.iter_mut().for_each(|name| self.column(name));
                Ok(())
            }
            Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotUnknown(inner)
            | Expr::Nested(inner) => self.expr(inner),
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                check_right_side(right)?;
                self.expr(left)?;
                self.expr(right)
            }
            Expr::InList { expr, list, negated: _ } => {
                self.expr(expr)?;
                self.exprs(list)
            }
            Expr::InSubquery { expr, subquery, negated: _ } => {
                self.expr(expr)?;
                self.with_names_unseen(true, |walker| walker.query(subquery))
            }
            Expr::Between { expr, negated: _, low, high } => {
                self.expr(expr)?;
                self.expr(low)?;
                self.expr(high)
            }
            Expr::BinaryOp { left, op, right } => {
                check_operator(op)?;
                if *op == BinaryOperator::StringConcat {
                    untyped_as_text(left, right);
                }
                self.expr(left)?;
                self.expr(right)
            }
            Expr::AnyOp { left, compare_op, right, is_some: _ } => {
                check_operator(compare_op)?;
                self.expr(left)?;
                self.expr(right)
            }
            Expr::AllOp { left, compare_op, right } => {
                check_operator(compare_op)?;
                self.expr(left)?;
                self.expr(right)
            }
            Expr::UnaryOp { op, expr } => match op {
                UnaryOperator::Plus | UnaryOperator::Minus | UnaryOperator::Not => self.expr(expr),
                other => refuse(&format!("the operator {other}"), "there is +, - and NOT"),
            },
            Expr::Like { negated: _, any, expr, pattern, escape_char }
            | Expr::ILike { negated: _, any, expr, pattern, escape_char } => {
                if *any {
                    return refuse("LIKE ANY", "join several LIKE with OR");
                }
                escape_by_backslash(pattern, escape_char)?;
                self.pattern(expr, pattern, escape_char.as_ref())
            }
            Expr::SimilarTo { negated: _, expr, pattern, escape_char } => {
                self.pattern(expr, pattern, escape_char.as_ref())
            }
            Expr::Case { case_token: _, end_token: _, operand, conditions, else_result } => {
                self.optional(operand)?;
                for CaseWhen { condition, result } in conditions {
                    self.expr(condition)?;
                    self.expr(result)?;
                }
                self.optional(else_result)
            }
            Expr::Exists { subquery, negated: _ } | Expr::Subquery(subquery) => {
                self.with_names_unseen(true, |walker| walker.query(subquery))
            }
            Expr::Cube(sets) if sets.len() > CUBE_MAX => {
                Err(Error::Limit(format!("a CUBE of more than {CUBE_MAX} columns")))
            }
            Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
                sets.iter_mut().try_for_each(|set| self.exprs(set))
            }
            Expr::Tuple(parts) => self.exprs(parts),
            Expr::Value(_) => self.value(expr),
            Expr::Function(function) => {
                postgres::without_schema(function);
                match self.spoken(function)? {
                    None => self.function(function),
                    Some(meant) => {
                        *expr = meant;
                        self.expr(expr)
                    }
                }
            }
            Expr::Interval(interval) => self.interval(interval),
            _ => self.special_form(expr),
        }
    }

    /// Forms that are written with words.
    fn special_form(&mut self, expr: &mut Expr) -> Result<()> {
        match expr {
            Expr::Cast { .. } => self.cast(expr),
            Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: _ }) => {
                check_type(data_type)?;
                if take_length(data_type)?.is_some() {
                    return refuse("a literal with a length", "write CAST('..' AS VARCHAR(n))");
                }
                check_text(value)
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                self.expr(timestamp)?;
                self.expr(time_zone)
            }
            Expr::Extract { field: _, syntax: _, expr } => self.expr(expr),
            Expr::Ceil { expr, field } | Expr::Floor { expr, field } => match field {
                CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => self.expr(expr),
                CeilFloorKind::DateTimeField(field) => {
                    refuse(&format!("CEIL or FLOOR TO {field}"), "write date_trunc")
                }
                CeilFloorKind::Scale(_) => {
                    refuse("CEIL or FLOOR to a number of digits", "write round(x, digits)")
                }
            },
            Expr::Position { expr, r#in } => {
                self.expr(expr)?;
                self.expr(r#in)
            }
            Expr::Substring { expr, substring_from, substring_for, special: _, shorthand: _ } => {
                self.expr(expr)?;
                self.optional(substring_from)?;
                self.optional(substring_for)
            }
            Expr::Trim { trim_where: _, trim_what, expr, trim_characters } => {
                self.expr(expr)?;
                self.optional(trim_what)?;
                trim_characters.as_mut().map_or(Ok(()), |exprs| self.exprs(exprs))
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                self.expr(expr)?;
                self.expr(overlay_what)?;
                self.expr(overlay_from)?;
                self.optional(overlay_for)
            }
            Expr::Array(Array { elem, named: _ }) => self.exprs(elem),
            Expr::CompoundFieldAccess { root, access_chain } if are_subscripts(access_chain) => {
                self.expr(root)?;
                access_chain.iter_mut().try_for_each(|part| self.subscript(part))
            }
            other => refuse_form(other),
        }
    }

    /// An element of a list, or a part of one.
    fn subscript(&mut self, part: &mut AccessExpr) -> Result<()> {
        match part {
            AccessExpr::Subscript(Subscript::Index { index }) => self.expr(index),
            AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride }) => {
                let bounds = [lower_bound, upper_bound, stride].into_iter().flatten();
                bounds.into_iter().try_for_each(|bound| self.expr(bound))
            }
            AccessExpr::Dot(_) => refuse("a field of a value", "there are no structs"),
        }
    }

    fn cast(&mut self, expr: &mut Expr) -> Result<()> {
        let Expr::Cast { kind, expr: inner, data_type, array, format } = expr else {
            return Ok(());
        };
        if *array {
            return refuse("CAST to an ARRAY", "write CAST(x AS BIGINT[])");
        }
        if let Some(format) = format {
            return refuse(&format!("CAST with FORMAT {format}"), "write to_date or to_timestamp");
        }
        match kind {
            CastKind::Cast | CastKind::DoubleColon | CastKind::TryCast | CastKind::SafeCast => {}
        }
        self.expr(inner)?;
        check_type(data_type)?;
        if let Some(length) = take_length(data_type)? {
            // As the standard's CAST: the first characters of a longer text.
            let number = |n: u64| Some(Box::new(Expr::value(Value::Number(n.to_string(), false))));
            *expr = Expr::Substring {
                expr: Box::new(expr.clone()),
                substring_from: number(1),
                substring_for: number(length),
                special: true,
                shorthand: false,
            };
        }
        Ok(())
    }

    fn pattern(
        &mut self,
        expr: &mut Expr,
        pattern: &mut Expr,
        escape: Option<&ValueWithSpan>,
    ) -> Result<()> {
        if let Some(escape) = escape {
            check_text(escape)?;
        }
        self.expr(expr)?;
        self.expr(pattern)
    }

    fn interval(&mut self, interval: &mut Interval) -> Result<()> {
        let Interval {
            value,
            leading_field: _,
            leading_precision,
            last_field,
            fractional_seconds_precision,
        } = interval;
        let precise = leading_precision.is_some() || fractional_seconds_precision.is_some();
        if precise || last_field.is_some() {
            return refuse("INTERVAL with a precision or TO", "write INTERVAL '1 day 2 hours'");
        }
        // A number stays one: the planner reads it with its unit.
        match &mut **value {
            Expr::Value(ValueWithSpan { value: Value::Number(digits, _), span: _ }) => {
                digits.retain(|c| c != '_');
                Ok(())
            }
            other => self.expr(other),
        }
    }

    /// A literal. Numbers with an exponent are floats, as in the standard: `1e300` has no place among decimals.
    fn value(&mut self, expr: &mut Expr) -> Result<()> {
        let Expr::Value(literal) = expr else { return Ok(()) };
        match &mut literal.value {
            Value::Number(digits, is_long) => {
                if *is_long {
                    return refuse(&format!("the number {digits}L"), "leave out the L");
                }
                digits.retain(|c| c != '_');
                if !digits.contains(['e', 'E']) {
                    return check_digits(digits);
                }
                let text = Value::SingleQuotedString(std::mem::take(digits));
                *expr = Expr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(Expr::value(text)),
                    data_type: DataType::DoublePrecision,
                    array: false,
                    format: None,
                };
                Ok(())
            }
            Value::Boolean(_)
            | Value::Null
            | Value::Placeholder(_)
            | Value::HexStringLiteral(_) => Ok(()),
            _ => check_text(literal),
        }
    }
}

/// The parser takes all that follows IS DISTINCT FROM for its right side: `a IS DISTINCT FROM b AND c` too.
fn check_right_side(right: &Expr) -> Result<()> {
    let is_more = match right {
        Expr::BinaryOp { op, .. } => {
            matches!(op, BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Xor)
        }
        Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_) => true,
        _ => false,
    };
    if is_more {
        return refuse(
            "AND, OR or IS behind IS DISTINCT FROM",
            "write (a IS DISTINCT FROM b) AND c, with the parentheses",
        );
    }
    Ok(())
}

/// `? || ?` is of texts, as nothing else says what the parameters are.
fn untyped_as_text(left: &mut Expr, right: &mut Expr) {
    let is_untyped = |expr: &Expr| match expr {
        Expr::Value(value) => matches!(value.value, Value::Placeholder(_) | Value::Null),
        _ => false,
    };
    if !(is_untyped(left) && is_untyped(right)) {
        return;
    }
    for side in [left, right] {
        let inner = std::mem::replace(side, Expr::value(Value::Null));
        *side = Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(inner),
            data_type: DataType::Varchar(None),
            array: false,
            format: None,
        };
    }
}

/// A DECIMAL has at most this many digits.
const DIGITS_MAX: usize = 38;

fn check_digits(number: &str) -> Result<()> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.trim_start_matches('0').len() + fraction.len() <= DIGITS_MAX {
        return Ok(());
    }
    refuse(
        &format!("a number of more than {DIGITS_MAX} digits"),
        "write it with an exponent (1e40), which makes it a DOUBLE",
    )
}

/// Lets through the forms of text that the planner reads as they are written.
fn check_text(literal: &ValueWithSpan) -> Result<()> {
    match &literal.value {
        Value::SingleQuotedString(_)
        | Value::EscapedStringLiteral(_)
        | Value::UnicodeStringLiteral(_)
        | Value::DollarQuotedString(_)
        | Value::Placeholder(_) => Ok(()),
        other => refuse(&format!("the literal {other}"), "write text in single quotes"),
    }
}

fn check_operator(op: &BinaryOperator) -> Result<()> {
    use BinaryOperator as B;
    match op {
        B::Plus
        | B::Minus
        | B::Multiply
        | B::Divide
        | B::Modulo
        | B::StringConcat
        | B::Gt
        | B::Lt
        | B::GtEq
        | B::LtEq
        | B::Eq
        | B::NotEq
        | B::And
        | B::Or
        | B::BitwiseOr
        | B::BitwiseAnd
        | B::PGBitwiseShiftLeft
        | B::PGBitwiseShiftRight
        | B::PGRegexMatch
        | B::PGRegexIMatch
        | B::PGRegexNotMatch
        | B::PGRegexNotIMatch
        | B::PGLikeMatch
        | B::PGILikeMatch
        | B::PGNotLikeMatch
        | B::PGNotILikeMatch => Ok(()),
        B::BitwiseXor => refuse(
            "the operator ^",
            "it is a power in some databases and exclusive or in others; write power(a, b) for a power",
        ),
        B::Spaceship => refuse("the operator <=>", "write IS NOT DISTINCT FROM"),
        B::Xor => refuse("the operator XOR", "write a <> b for truth values"),
        B::DuckIntegerDivide | B::MyIntegerDivide => {
            refuse(&format!("the operator {op}"), "write trunc(a / b)")
        }
        other => refuse(&format!("the operator {other}"), "docs/sql.md lists those that there are"),
    }
}

/// Names the forms that there are not. Without a wildcard: what a new version of the parser adds must be decided on.
fn refuse_form(expr: &Expr) -> Result<()> {
    let (what, instead) = match expr {
        Expr::Wildcard(_) | Expr::QualifiedWildcard(..) => {
            ("* in an expression", "it stands in SELECT and in count(*)")
        }
        Expr::InUnnest { .. } => ("IN UNNEST", "IN takes a list or a subquery"),
        Expr::CompoundFieldAccess { .. } => ("a field of a value", "there are no structs"),
        Expr::JsonAccess { .. } => ("a path into JSON", "there is no JSON"),
        Expr::IsNormalized { .. } => ("IS NORMALIZED", "leave it out"),
        Expr::RLike { .. } => ("RLIKE", "write regexp_like(text, pattern)"),
        Expr::Convert { .. } => ("CONVERT", "write CAST"),
        Expr::Collate { .. } => ("COLLATE", "text compares by code point; write lower(text)"),
        Expr::Prefixed { .. } => ("a character set before a text", "text is UTF-8"),
        Expr::Struct { .. } | Expr::Named { .. } => ("a struct", "there are none"),
        Expr::Dictionary(_) | Expr::Map(_) => ("a map", "there are none"),
        Expr::MatchAgainst { .. } => ("MATCH AGAINST", "write LIKE or regexp_like"),
        Expr::OuterJoin(_) => ("(+)", "write LEFT JOIN"),
        Expr::Prior(_) => ("PRIOR", "write WITH RECURSIVE"),
        Expr::Lambda(_) => ("a lambda", "there are no functions that take one"),
        Expr::MemberOf(_) => ("MEMBER OF", "IN takes a list or a subquery"),
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Between { .. }
        | Expr::BinaryOp { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::SimilarTo { .. }
        | Expr::AnyOp { .. }
        | Expr::AllOp { .. }
        | Expr::UnaryOp { .. }
        | Expr::Cast { .. }
        | Expr::AtTimeZone { .. }
        | Expr::Extract { .. }
        | Expr::Ceil { .. }
        | Expr::Floor { .. }
        | Expr::Position { .. }
        | Expr::Substring { .. }
        | Expr::Trim { .. }
        | Expr::Overlay { .. }
        | Expr::Nested(_)
        | Expr::Value(_)
        | Expr::TypedString(_)
        | Expr::Function(_)
        | Expr::Case { .. }
        | Expr::Exists { .. }
        | Expr::Subquery(_)
        | Expr::GroupingSets(_)
        | Expr::Cube(_)
        | Expr::Rollup(_)
        | Expr::Tuple(_)
        | Expr::Interval(_)
        | Expr::Array(_) => {
            return Err(Error::Refused(format!("internal error: {expr} was not looked at")));
        }
    };
    refuse(what, instead)
}
