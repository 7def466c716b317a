//! What an aggregate query asks.

use crate::Predicate;

/// Exact integer arithmetic on columns of `Int` or `Wide` values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A column, by its index.
    Column(usize),
    /// A number.
    Literal(i128),
    /// Sum of two.
    Add(Box<Expr>, Box<Expr>),
    /// Difference of two.
    Sub(Box<Expr>, Box<Expr>),
    /// Product of two.
    Mul(Box<Expr>, Box<Expr>),
}

/// How a column of floats is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloatWidth {
    /// REAL.
    Single,
    /// DOUBLE.
    Double,
}

/// Arithmetic in 64-bit floats.
#[derive(Debug, Clone, PartialEq)]
pub enum FloatExpr {
    /// A column of floats.
    Column(usize, FloatWidth),
    /// An integer column, each value divided by a constant (a power of ten for DECIMAL).
    Integer(usize, f64),
    /// A number.
    Literal(f64),
    /// Sum of two.
    Add(Box<FloatExpr>, Box<FloatExpr>),
    /// Difference of two.
    Sub(Box<FloatExpr>, Box<FloatExpr>),
    /// Product of two.
    Mul(Box<FloatExpr>, Box<FloatExpr>),
}

/// One aggregate. Rows in which a column of its expression is NULL do not count.
#[derive(Debug, Clone, PartialEq)]
pub enum Aggregate {
    /// Rows.
    CountRows,
    /// Rows in which none of these columns is NULL.
    Count(Vec<usize>),
    /// Exact sum.
    Sum(Expr),
    /// Sum of floats, in no particular order.
    SumFloat(FloatExpr),
    /// Smallest value.
    Min(Expr),
    /// Largest value.
    Max(Expr),
}

/// An aggregate query over one table.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Grouping columns; none for one group of all rows.
    pub groups: Vec<usize>,
    /// What is computed for each group.
    pub aggregates: Vec<Aggregate>,
    /// Which rows count.
    pub predicates: Vec<Predicate>,
}

impl Expr {
    /// `self + other`.
    pub fn plus(self, other: Expr) -> Expr {
        Expr::Add(Box::new(self), Box::new(other))
    }

    /// `self - other`.
    pub fn minus(self, other: Expr) -> Expr {
        Expr::Sub(Box::new(self), Box::new(other))
    }

    /// `self * other`.
    pub fn times(self, other: Expr) -> Expr {
        Expr::Mul(Box::new(self), Box::new(other))
    }

    /// Calls `visit` with each column.
    pub fn for_columns(&self, visit: &mut impl FnMut(usize)) {
        match self {
            Expr::Column(column) => visit(*column),
            Expr::Literal(_) => {}
            Expr::Add(a, b) | Expr::Sub(a, b) | Expr::Mul(a, b) => {
                a.for_columns(visit);
                b.for_columns(visit);
            }
        }
    }
}

impl FloatExpr {
    /// Calls `visit` with each column.
    pub fn for_columns(&self, visit: &mut impl FnMut(usize)) {
        match self {
            FloatExpr::Column(column, _) | FloatExpr::Integer(column, _) => visit(*column),
            FloatExpr::Literal(_) => {}
            FloatExpr::Add(a, b) | FloatExpr::Sub(a, b) | FloatExpr::Mul(a, b) => {
                a.for_columns(visit);
                b.for_columns(visit);
            }
        }
    }
}

impl Aggregate {
    /// Calls `visit` with each column.
    pub fn for_columns(&self, mut visit: impl FnMut(usize)) {
        match self {
            Aggregate::CountRows => {}
            Aggregate::Count(columns) => columns.iter().for_each(|column| visit(*column)),
            Aggregate::Sum(e) | Aggregate::Min(e) | Aggregate::Max(e) => e.for_columns(&mut visit),
            Aggregate::SumFloat(e) => e.for_columns(&mut visit),
        }
    }
}
