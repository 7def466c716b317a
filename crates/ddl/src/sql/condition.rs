//! Tokens to the condition of a CHECK.

use coload_types::{Column, DataType, Result, parse_value, same_name};

use super::lexer::Kind;
use super::parser::Parser;
use crate::Check;
use crate::check::{Comparison, Condition, DEPTH_MAX, Form, Operand, TERMS_MAX};
use crate::like::Like;

/// What a condition may be made of.
const UNDERSTOOD: &str =
    "a comparison, BETWEEN, IN, LIKE or IS NULL; of columns, literals and length()";

/// What is compared, before both sides are known.
#[derive(Debug, Clone)]
enum Side {
    Column(usize),
    Length(usize),
    /// Its text, and where it stands.
    Literal(String),
}

impl Parser<'_> {
    /// A whole condition, and nothing after it.
    pub fn check(&mut self, name: Option<String>, columns: &[Column]) -> Result<Check> {
        let condition = self.condition(columns, 0)?;
        self.end(&format!("AND, OR or the end, after {UNDERSTOOD}"))?;
        Ok(Check::new(name, condition, columns))
    }

    /// A condition, up to what cannot be part of it.
    pub fn condition(&mut self, columns: &[Column], depth: usize) -> Result<Condition> {
        let mut parts = vec![self.conjunction(columns, depth)?];
        while self.take_word("OR") {
            parts.push(self.conjunction(columns, depth)?);
        }
        Ok(one_or(parts, Condition::Or))
    }

    fn conjunction(&mut self, columns: &[Column], depth: usize) -> Result<Condition> {
        let mut parts = vec![self.negation(columns, depth)?];
        while self.take_word("AND") {
            parts.push(self.negation(columns, depth)?);
        }
        Ok(one_or(parts, Condition::And))
    }

    fn negation(&mut self, columns: &[Column], depth: usize) -> Result<Condition> {
        if depth == DEPTH_MAX {
            return Err(self.expected(&format!("at most {DEPTH_MAX} conditions within each other")));
        }
        if self.take_word("NOT") {
            let negated = self.negation(columns, depth + 1)?;
            return Ok(Condition::Not(Box::new(negated)));
        }
        if self.take_symbol('(') {
            let inner = self.condition(columns, depth + 1)?;
            self.symbol(')', ") after the condition")?;
            return Ok(inner);
        }
        self.comparison(columns)
    }

    fn comparison(&mut self, columns: &[Column]) -> Result<Condition> {
        let left = self.side(columns)?;
        if self.take_word("IS") {
            let negated = self.take_word("NOT");
            self.keyword("NULL", "NULL or NOT NULL after IS")?;
            let Side::Column(column) = left else {
                return Err(self.error_before("IS NULL is asked of a column"));
            };
            return Ok(negate(negated, Condition::IsNull(column)));
        }
        let negated = self.take_word("NOT");
        if self.take_word("BETWEEN") {
            return Ok(negate(negated, self.bounds(left, columns)?));
        }
        if self.take_word("IN") {
            return Ok(negate(negated, self.list(left, columns)?));
        }
        if self.take_word("LIKE") {
            return Ok(negate(negated, self.pattern(&left, columns)?));
        }
        if negated {
            return Err(self.expected("BETWEEN, IN or LIKE after NOT"));
        }
        let Some(comparison) = self.comparison_sign() else {
            return match left {
                Side::Column(column) if columns[column].data_type == DataType::Boolean => {
                    Ok(Condition::IsTrue(column))
                }
                _ => Err(self.expected(UNDERSTOOD)),
            };
        };
        let right = self.side(columns)?;
        let [left, right] = self.bind([left, right], columns)?;
        Ok(Condition::Compare { left, comparison, right })
    }

    fn bounds(&mut self, left: Side, columns: &[Column]) -> Result<Condition> {
        let low = self.side(columns)?;
        self.keyword("AND", "AND and the upper bound")?;
        let high = self.side(columns)?;
        let [operand, low, high] = self.bind([left, low, high], columns)?;
        Ok(Condition::Between { operand, low, high })
    }

    fn comparison_sign(&mut self) -> Option<Comparison> {
        if self.take_symbol('=') {
            return Some(Comparison::Equal);
        }
        if self.take_symbol('!') {
            return self.take_symbol('=').then_some(Comparison::NotEqual);
        }
        if self.take_symbol('<') {
            return Some(match () {
                () if self.take_symbol('=') => Comparison::LessOrEqual,
                () if self.take_symbol('>') => Comparison::NotEqual,
                () => Comparison::Less,
            });
        }
        self.take_symbol('>').then(|| match self.take_symbol('=') {
            true => Comparison::GreaterOrEqual,
            false => Comparison::Greater,
        })
    }

    fn list(&mut self, left: Side, columns: &[Column]) -> Result<Condition> {
        self.symbol('(', "( and the values after IN")?;
        let mut list = Vec::new();
        let operand = loop {
            let side = self.side(columns)?;
            if !matches!(side, Side::Literal(_)) || list.len() == TERMS_MAX {
                return Err(self.error_before(&format!("IN takes 1 to {TERMS_MAX} literals")));
            }
            let [left, value] = self.bind([left.clone(), side], columns)?;
            list.push(value);
            if !self.take_symbol(',') {
                break left;
            }
        };
        self.symbol(')', "a comma or )")?;
        Ok(Condition::In { operand, list })
    }

    fn pattern(&mut self, left: &Side, columns: &[Column]) -> Result<Condition> {
        match (left, self.peek().clone()) {
            (Side::Column(column), Kind::Text(pattern)) if columns[*column].data_type.is_text() => {
                self.skip();
                let like = Like::new(&pattern);
                Ok(Condition::Like { column: *column, pattern, like })
            }
            _ => Err(self.expected("a text after LIKE, and a column of text before it")),
        }
    }

    /// A column, length(column), or a literal.
    fn side(&mut self, columns: &[Column]) -> Result<Side> {
        let is_length = |word: &str| {
            ["length", "char_length", "character_length"]
                .iter()
                .any(|l| l.eq_ignore_ascii_case(word))
        };
        let is_literal =
            |word: &str| ["DATE", "TIME", "TIMESTAMP"].iter().any(|l| l.eq_ignore_ascii_case(word));
        match self.peek().clone() {
            Kind::Word(word) if is_length(&word) && self.next_is_symbol('(') => {
                self.skip();
                self.skip();
                let Side::Column(column) = self.side(columns)? else {
                    return Err(self.error_before("length() takes a column"));
                };
                if !columns[column].data_type.is_text() {
                    return Err(self.error_before("length() takes a column of text"));
                }
                self.symbol(')', ") after the column")?;
                Ok(Side::Length(column))
            }
            Kind::Word(word)
                if is_literal(&word) && self.next_is_text()
                    || ["TRUE", "FALSE", "NULL"].iter().any(|l| l.eq_ignore_ascii_case(&word)) =>
            {
                self.literal_side()
            }
            Kind::Word(name) | Kind::Name(name) => {
                let found = columns.iter().position(|c| same_name(&c.name, &name));
                let Some(column) = found else {
                    return Err(self.expected(&format!("{UNDERSTOOD} (there is no column {name})")));
                };
                self.skip();
                Ok(Side::Column(column))
            }
            Kind::Number(_) | Kind::Text(_) | Kind::Symbol('-' | '+') => self.literal_side(),
            _ => Err(self.expected(UNDERSTOOD)),
        }
    }

    fn literal_side(&mut self) -> Result<Side> {
        match self.literal()? {
            Some(text) => Ok(Side::Literal(text)),
            None => Err(self.error_before("nothing compares with NULL: use IS NULL")),
        }
    }

    /// Gives all sides one form, in which they can be compared.
    fn bind<const N: usize>(&self, sides: [Side; N], columns: &[Column]) -> Result<[Operand; N]> {
        let data_type = |side: &Side| match side {
            Side::Column(column) => Some(columns[*column].data_type),
            Side::Length(_) => Some(DataType::BigInt),
            Side::Literal(_) => None,
        };
        let types: Vec<DataType> = sides.iter().filter_map(data_type).collect();
        let Some(first) = types.first().copied() else {
            return Err(
                self.error_before("a literal is compared with a column, not with a literal")
            );
        };
        let scale =
            types.iter().filter_map(|t| exact(*t)).map(|(_, scale)| scale).max().unwrap_or(0);
        for other in &types {
            if !are_comparable(first, *other)
                || exact(*other).is_some_and(|(whole, _)| whole + scale > 38)
            {
                let text = format!("{first} and {other} are not compared here");
                return Err(self.error_before(&text));
            }
        }
        let operand = |side: Side| {
            Ok(match side {
                Side::Column(column) => {
                    Operand::Column { column, form: form(columns[column].data_type, scale) }
                }
                Side::Length(column) => Operand::Length { column, factor: power(scale) },
                Side::Literal(text) => {
                    let value = parse_value(text.as_bytes(), first).map_err(|rule| {
                        self.error_before(&format!("{text} is not {first}: {}", rule.text()))
                    })?;
                    Operand::Literal { value, data_type: first, form: form(first, scale) }
                }
            })
        };
        let bound: Vec<Operand> = sides.into_iter().map(operand).collect::<Result<_>>()?;
        bound.try_into().map_err(|_| self.error_before("not as many values as there were"))
    }
}

fn negate(negated: bool, condition: Condition) -> Condition {
    if negated { Condition::Not(Box::new(condition)) } else { condition }
}

fn one_or(mut parts: Vec<Condition>, many: fn(Vec<Condition>) -> Condition) -> Condition {
    match parts.len() {
        1 => parts.remove(0),
        _ => many(parts),
    }
}

/// Digits before and after the point of a type of exact numbers.
fn exact(data_type: DataType) -> Option<(u32, u32)> {
    match data_type {
        DataType::SmallInt => Some((5, 0)),
        DataType::Integer => Some((10, 0)),
        DataType::BigInt => Some((19, 0)),
        DataType::Decimal { precision, scale } => {
            Some((u32::from(precision - scale), u32::from(scale)))
        }
        DataType::Boolean | DataType::Real | DataType::Double => None,
        DataType::Date | DataType::Time | DataType::Timestamp | DataType::TimestampTz => None,
        DataType::Char(_) | DataType::Varchar(_) | DataType::Binary(_) | DataType::Uuid => None,
        DataType::List(_) => None,
    }
}

fn are_comparable(a: DataType, b: DataType) -> bool {
    use DataType::{Binary, Double, Real};
    let float = |t: DataType| matches!(t, Real | Double);
    exact(a).is_some() && exact(b).is_some()
        || float(a) && float(b)
        || a.is_text() && b.is_text()
        || matches!((a, b), (Binary(_), Binary(_)))
        || a == b
}

fn form(data_type: DataType, scale: u32) -> Form {
    match (exact(data_type), data_type) {
        (Some((_, own)), _) => Form::Exact(power(scale - own)),
        (None, DataType::Real) => Form::Real,
        (None, DataType::Double) => Form::Double,
        (None, _) if data_type.physical() == coload_types::Physical::Bytes => Form::Bytes,
        (None, _) => Form::Exact(1),
    }
}

fn power(digits: u32) -> i128 {
    10_i128.pow(digits)
}
