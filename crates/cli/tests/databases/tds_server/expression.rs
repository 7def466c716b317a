//! Values of expressions.

use std::collections::HashMap;
use std::sync::Arc;

use super::store::Column;
use super::tokens::{Token, is_sign, is_word, text_of, type_at};
use super::types::{SqlError, Type, Val, Value, error, store};

/// What names stand for.
#[derive(Default)]
pub struct Scope<'a> {
    pub columns: &'a [Column],
    pub row: &'a [Value],
    pub parameters: Option<&'a HashMap<String, Val>>,
    pub variables: Option<&'a HashMap<String, Val>>,
}

/// The value of tokens, all of them.
pub fn evaluate_all(tokens: &[Token], scope: &Scope<'_>) -> Result<Val, SqlError> {
    let mut at = 0;
    let value = condition(tokens, &mut at, scope)?;
    match at == tokens.len() {
        true => Ok(value),
        false => error(102, format!("Incorrect syntax near '{}'.", text_of(&tokens[at..]))),
    }
}

pub fn condition(tokens: &[Token], at: &mut usize, scope: &Scope<'_>) -> Result<Val, SqlError> {
    let mut value = comparison(tokens, at, scope)?;
    while is_word(tokens.get(*at), "AND") {
        *at += 1;
        let other = comparison(tokens, at, scope)?;
        value = match (&value, &other) {
            (Val::Int(0), _) | (_, Val::Int(0)) => Val::Int(0),
            (Val::Null, _) | (_, Val::Null) => Val::Null,
            _ => Val::Int(1),
        };
    }
    Ok(value)
}

pub fn comparison(tokens: &[Token], at: &mut usize, scope: &Scope<'_>) -> Result<Val, SqlError> {
    let value = operand(tokens, at, scope)?;
    if is_word(tokens.get(*at), "IS") {
        *at += 1;
        let negated = is_word(tokens.get(*at), "NOT");
        *at += 1 + usize::from(negated);
        return Ok(Val::Int(i64::from((value == Val::Null) != negated)));
    }
    let Some(Token::Sign(sign)) = tokens.get(*at) else { return Ok(value) };
    if !["=", "<", ">", "<=", ">=", "<>", "!="].contains(&sign.as_str()) {
        return Ok(value);
    }
    *at += 1;
    let other = operand(tokens, at, scope)?;
    if value == Val::Null || other == Val::Null {
        return Ok(Val::Null);
    }
    let order = match (&value, &other) {
        (Val::Text(a), Val::Text(b)) => {
            a.trim_end().to_lowercase().cmp(&b.trim_end().to_lowercase())
        }
        (Val::Raw(_, a), Val::Raw(_, b)) => a.cmp(b),
        (Val::Number(_), _) | (_, Val::Number(_)) => {
            let float = |value: &Val| match value {
                Val::Int(number) => *number as f64,
                Val::Number(text) | Val::Text(text) => text.parse().unwrap_or(f64::NAN),
                _ => f64::NAN,
            };
            float(&value).total_cmp(&float(&other))
        }
        _ => value.int()?.cmp(&other.int()?),
    };
    Ok(Val::Int(i64::from(match sign.as_str() {
        "=" => order.is_eq(),
        "<" => order.is_lt(),
        ">" => order.is_gt(),
        "<=" => order.is_le(),
        ">=" => order.is_ge(),
        _ => order.is_ne(),
    })))
}

pub fn operand(tokens: &[Token], at: &mut usize, scope: &Scope<'_>) -> Result<Val, SqlError> {
    let mut value = single(tokens, at, scope)?;
    loop {
        let plus = is_sign(tokens.get(*at), "+");
        let minus = is_sign(tokens.get(*at), "-");
        let times = is_sign(tokens.get(*at), "*");
        if !plus && !minus && !times {
            return Ok(value);
        }
        *at += 1;
        let other = single(tokens, at, scope)?;
        value = match (value, other) {
            (Val::Null, _) | (_, Val::Null) => Val::Null,
            (Val::Text(a), Val::Text(b)) if plus => Val::Text(a + &b),
            (a, b) => {
                let (a, b) = (a.int()?.unwrap_or(0), b.int()?.unwrap_or(0));
                Val::Int(if plus {
                    a + b
                } else if minus {
                    a - b
                } else {
                    a * b
                })
            }
        };
    }
}

pub fn single(tokens: &[Token], at: &mut usize, scope: &Scope<'_>) -> Result<Val, SqlError> {
    let token = tokens.get(*at).cloned();
    *at += 1;
    let column = |name: &str| {
        let found = scope.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
        match found {
            Some(at) => Ok(Val::of(&scope.row.get(at).cloned().flatten(), &scope.columns[at].of)),
            None => error(207, format!("Invalid column name '{name}'.")),
        }
    };
    Ok(match token {
        Some(Token::Text(text)) => Val::Text(text),
        Some(Token::Bytes(bytes)) => Val::Bytes(bytes),
        Some(Token::Number(text)) => text.parse().map_or(Val::Number(text), Val::Int),
        Some(Token::Sign(sign)) if sign == "-" => match single(tokens, at, scope)? {
            Val::Int(number) => Val::Int(-number),
            Val::Number(text) => Val::Number(format!("-{text}")),
            other => other,
        },
        Some(Token::Sign(sign)) if sign == "(" => {
            let value = condition(tokens, at, scope)?;
            *at += 1;
            value
        }
        Some(Token::Variable(name)) => {
            let given = scope
                .parameters
                .and_then(|all| all.get(&name))
                .or(scope.variables.and_then(|all| all.get(&name)));
            match given {
                Some(value) => value.clone(),
                None => {
                    return error(137, format!("Must declare the scalar variable \"@{name}\"."));
                }
            }
        }
        Some(Token::Name(name)) => column(&name)?,
        Some(Token::Word(word)) => match word.to_uppercase().as_str() {
            "NULL" => Val::Null,
            "CAST" | "CONVERT" => {
                let casts = word.eq_ignore_ascii_case("CAST");
                *at += 1;
                let (value, of) = if casts {
                    let value = condition(tokens, at, scope)?;
                    *at += 1;
                    (value, type_at(tokens, at)?)
                } else {
                    let of = type_at(tokens, at)?;
                    *at += 1;
                    (condition(tokens, at, scope)?, of)
                };
                *at += 1;
                match value {
                    Val::Raw(..) if of.is_wide_text() => {
                        return error(529, "This server converts no such type to text.");
                    }
                    value => Val::of(&store(&value, &of, "")?, &of),
                }
            }
            "SYSUTCDATETIME" | "GETDATE" => {
                *at += 2;
                Val::Text("2026-01-02 03:04:05.678901".to_owned())
            }
            "LEN" | "DATALENGTH" => {
                *at += 1;
                let value = condition(tokens, at, scope)?;
                *at += 1;
                match value {
                    Val::Text(text) => Val::Int(text.encode_utf16().count() as i64),
                    Val::Raw(_, bytes) => Val::Int(bytes.len() as i64),
                    other => other,
                }
            }
            _ => column(&word)?,
        },
        other => return error(102, format!("Incorrect syntax near {other:?}.")),
    })
}

pub fn places(columns: &[Column], names: &[String]) -> Result<Vec<usize>, SqlError> {
    names
        .iter()
        .map(|name| {
            match columns.iter().position(|column| column.name.eq_ignore_ascii_case(name)) {
                Some(at) => Ok(at),
                None => error(207, format!("Invalid column name '{name}'.")),
            }
        })
        .collect()
}

/// The type of a value that is computed.
pub fn type_of(part: &[Token]) -> Type {
    let of = |at: usize| type_at(part, &mut { at }).ok();
    let found = match part.first() {
        Some(Token::Word(word)) if word.eq_ignore_ascii_case("CONVERT") => of(2),
        Some(Token::Word(word)) if word.eq_ignore_ascii_case("CAST") => {
            part.iter().rposition(|token| is_word(Some(token), "AS")).and_then(|at| of(at + 1))
        }
        Some(Token::Text(_)) => Some(Type::text()),
        _ => None,
    };
    found.unwrap_or_else(Type::int)
}

/// COUNT, SUM, MIN and MAX, perhaps in a CAST.
pub fn aggregate(
    part: &[Token],
    columns: &[Column],
    rows: &[Arc<Vec<Value>>],
) -> Result<Option<(Val, Type)>, SqlError> {
    if is_word(part.first(), "CAST") {
        let Some(at) = part.iter().rposition(|token| is_word(Some(token), "AS")) else {
            return Ok(None);
        };
        let of = type_of(part);
        return Ok(aggregate(&part[2..at], columns, rows)?.map(|(value, _)| (value, of)));
    }
    let (Some(Token::Word(word)), Some(inner)) =
        (part.first(), part.get(2..part.len().saturating_sub(1)))
    else {
        return Ok(None);
    };
    let (distinct, inner) = match inner.first() {
        Some(first) if is_word(Some(first), "DISTINCT") => (true, &inner[1..]),
        _ => (false, inner),
    };
    let word = word.to_uppercase();
    if !["COUNT", "COUNT_BIG", "SUM", "MIN", "MAX"].contains(&word.as_str())
        || !is_sign(part.get(1), "(")
    {
        return Ok(None);
    }
    if is_sign(inner.first(), "*") {
        return Ok(Some((Val::Int(rows.len() as i64), Type::int())));
    }
    let mut values = Vec::new();
    for row in rows {
        let scope = Scope { columns, row, ..Scope::default() };
        values.push(evaluate_all(inner, &scope)?);
    }
    values.retain(|value| *value != Val::Null);
    if word.starts_with("COUNT") {
        let count = if distinct {
            values
                .iter()
                .map(|value| format!("{value:?}"))
                .collect::<std::collections::HashSet<_>>()
                .len()
        } else {
            values.len()
        };
        return Ok(Some((Val::Int(count as i64), Type::int())));
    }
    let numbers: Vec<i64> = values.iter().filter_map(|value| value.int().ok().flatten()).collect();
    let value = match word.as_str() {
        "SUM" if !numbers.is_empty() => Some(numbers.iter().sum()),
        "MIN" => numbers.iter().min().copied(),
        "MAX" => numbers.iter().max().copied(),
        _ => None,
    };
    Ok(Some((value.map_or(Val::Null, Val::Int), Type::bigint())))
}
