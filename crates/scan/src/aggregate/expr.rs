//! What an aggregate query asks.

use crate::Predicate;

/// Exact integer arithmetic on columns of `Int` or `Wide` values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A column, by its index.
    Column(usize),
    /// A constant.
    Literal(i128),
    /// The first plus the second.
    Add(Box<Expr>, Box<Expr>),
    /// The first less the second.
    Sub(Box<Expr>, Box<Expr>),
    /// The first times the second.
    Mul(Box<Expr>, Box<Expr>),
}

/// How a column of floats is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloatWidth {
    /// REAL, 32 bits.
    Single,
    /// DOUBLE, 64 bits.
    Double,
}

/// Arithmetic in 64-bit floats.
#[derive(Debug, Clone, PartialEq)]
pub enum FloatExpr {
    /// A column of floats.
    Column(usize, FloatWidth),
    /// An integer column, each value divided by a constant (a power of ten for DECIMAL).
    Integer(usize, f64),
    /// A constant.
    Literal(f64),
    /// The first plus the second.
    Add(Box<FloatExpr>, Box<FloatExpr>),
    /// The first less the second.
    Sub(Box<FloatExpr>, Box<FloatExpr>),
    /// The first times the second.
    Mul(Box<FloatExpr>, Box<FloatExpr>),
}

/// One aggregate. Rows in which a column of its expression is NULL do not count.
#[derive(Debug, Clone, PartialEq)]
pub enum Aggregate {
    /// Number of rows, whatever they hold.
    CountRows,
    /// Rows in which none of these columns is NULL.
    Count(Vec<usize>),
    /// Exact sum of the rows' values.
    Sum(Expr),
    /// Sum of floats, in no particular order.
    SumFloat(FloatExpr),
    /// Smallest of the rows' values.
    Min(Expr),
    /// Largest of the rows' values.
    Max(Expr),
}

/// An aggregate query over one table.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Grouping columns; none for one group of all rows.
    pub groups: Vec<usize>,
    /// What is computed for each group.
    pub aggregates: Vec<Aggregate>,
    /// Tests that a row has to pass, all of them, to count.
    pub predicates: Vec<Predicate>,
}

impl Expr {
    /// The expression `self + other`.
    pub fn plus(self, other: Expr) -> Expr {
        Expr::Add(Box::new(self), Box::new(other))
    }

    /// The expression `self - other`.
    pub fn minus(self, other: Expr) -> Expr {
        Expr::Sub(Box::new(self), Box::new(other))
    }

    /// The expression `self * other`.
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
