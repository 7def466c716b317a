//! Chains of operators, which the parser nests to the left by a loop, without a bound.

use coload_types::Result;
use datafusion::sql::sqlparser::ast::{AccessExpr, BinaryOperator, Expr, Value};

use super::super::text::too_deep;
use super::Walker;

/// Terms of AND and OR from which on their tree is balanced; shorter ones stay as they are written.
const BALANCED_FROM: usize = 32;

impl Walker<'_> {
    /// Bounds the operators that follow each other to the left of this one, and balances chains of AND and OR.
    pub(super) fn chain(&self, expr: &mut Expr) -> Result<()> {
        if let Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } = expr {
            let op = op.clone();
            if length_of(expr, &op) > BALANCED_FROM {
                let terms = take_terms(expr, &op);
                *expr = balance(terms, &op);
            }
        }
        let (mut levels, mut current) = (self.depth, &*expr);
        while let Some(left) = left_of(current) {
            levels += 1;
            if levels > self.limits.depth {
                return Err(too_deep(self.limits.depth));
            }
            current = left;
        }
        Ok(())
    }
}

fn length_of(expr: &Expr, wanted: &BinaryOperator) -> usize {
    let (mut length, mut current) = (1, expr);
    while let Expr::BinaryOp { left, op, .. } = current
        && op == wanted
    {
        length += 1;
        current = left;
    }
    length
}

/// The terms of a chain, in order.
fn take_terms(expr: &mut Expr, wanted: &BinaryOperator) -> Vec<Expr> {
    let mut current = std::mem::replace(expr, Expr::value(Value::Null));
    let mut terms = Vec::new();
    loop {
        match current {
            Expr::BinaryOp { left, op, right } if op == *wanted => {
                terms.push(*right);
                current = *left;
            }
            first => {
                terms.push(first);
                terms.reverse();
                return terms;
            }
        }
    }
}

/// Joins terms in a tree whose depth is the logarithm of their number.
fn balance(mut terms: Vec<Expr>, op: &BinaryOperator) -> Expr {
    while terms.len() > 1 {
        let mut joined = Vec::with_capacity(terms.len().div_ceil(2));
        let mut rest = terms.into_iter();
        while let Some(left) = rest.next() {
            joined.push(match rest.next() {
                None => left,
                Some(right) => {
                    Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) }
                }
            });
        }
        terms = joined;
    }
    terms.pop().unwrap_or_else(|| Expr::value(Value::Null))
}

/// What stands to the left of an operator.
fn left_of(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::BinaryOp { left, .. } | Expr::AnyOp { left, .. } | Expr::AllOp { left, .. } => {
            Some(left)
        }
        Expr::IsFalse(expr)
        | Expr::IsNotFalse(expr)
        | Expr::IsTrue(expr)
        | Expr::IsNotTrue(expr)
        | Expr::IsNull(expr)
        | Expr::IsNotNull(expr)
        | Expr::IsUnknown(expr)
        | Expr::IsNotUnknown(expr)
        | Expr::IsDistinctFrom(expr, _)
        | Expr::IsNotDistinctFrom(expr, _)
        | Expr::IsNormalized { expr, .. }
        | Expr::InList { expr, .. }
        | Expr::InSubquery { expr, .. }
        | Expr::InUnnest { expr, .. }
        | Expr::Between { expr, .. }
        | Expr::Like { expr, .. }
        | Expr::ILike { expr, .. }
        | Expr::SimilarTo { expr, .. }
        | Expr::RLike { expr, .. }
        | Expr::Cast { expr, .. }
        | Expr::Collate { expr, .. }
        | Expr::UnaryOp { expr, .. }
        | Expr::Named { expr, .. }
        | Expr::OuterJoin(expr)
        | Expr::AtTimeZone { timestamp: expr, .. }
        | Expr::JsonAccess { value: expr, .. }
        | Expr::CompoundFieldAccess { root: expr, .. } => Some(expr),
        _ => None,
    }
}

/// Whether what stands behind a value are elements and parts of lists.
pub(super) fn are_subscripts(access: &[AccessExpr]) -> bool {
    access.iter().all(|part| matches!(part, AccessExpr::Subscript(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balanced_chain_has_its_terms_in_order() {
        let term = |n: usize| Expr::value(Value::Number(n.to_string(), false));
        let joined = balance((0..100).map(term).collect(), &BinaryOperator::And);
        let expected: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        assert_eq!(joined.to_string(), expected.join(" AND "));
        assert!(length_of(&joined, &BinaryOperator::And) < 9);
    }
}
