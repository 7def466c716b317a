//! Expressions as terms over shared roots.
//!
//! A term is `offset + factor * root`. A root is a column, a sum or a product of terms. So
//! `price * (1 - discount)` is a product of the terms `price` and `100 - discount`: literals and
//! signs cost nothing, and a part that two aggregates share is computed once.

use std::collections::HashMap;

use coload_types::{Error, Result};

use super::expr::{Aggregate, Expr, FloatExpr, FloatWidth};

/// `offset + factor * root`; a literal has no root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Term {
    pub root: Option<usize>,
    pub factor: i128,
    pub offset: i128,
}

/// What a term is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Root {
    /// Values of a column, by its index in [`Program::columns`].
    Column(usize),
    Add(Term, Term),
    Mul(Term, Term),
}

/// Float arithmetic, columns by slot; evaluated in place after its parts.
#[derive(Debug, Clone, PartialEq)]
pub enum FloatNode {
    /// Root of the ordinals.
    Column(usize, FloatWidth),
    /// Root of the integers, and the divisor.
    Integer(usize, f64),
    Literal(f64),
    Add(Box<FloatNode>, Box<FloatNode>),
    Sub(Box<FloatNode>, Box<FloatNode>),
    Mul(Box<FloatNode>, Box<FloatNode>),
}

/// What a group keeps for one aggregate.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Count,
    Sum(Term),
    Min(Term),
    Max(Term),
    SumFloat(FloatNode),
}

/// An aggregate, and the slots of the columns whose NULLs it skips.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    pub step: Step,
    pub slots: Vec<usize>,
}

/// A query's aggregates, compiled; the same for all segments.
#[derive(Debug, Clone)]
pub struct Program {
    /// Columns that are read, by table index; a slot is a position here.
    pub(super) columns: Vec<usize>,
    /// Roots in an order in which each follows what it is made of.
    pub(super) roots: Vec<Root>,
    pub(super) outputs: Vec<Output>,
}

/// What is compiled so far.
#[derive(Default)]
struct Builder {
    columns: Vec<usize>,
    roots: Vec<Root>,
    known: HashMap<Root, usize>,
}

impl Program {
    /// Compiles aggregates.
    ///
    /// # Errors
    /// `Invalid` when literals overflow 128 bits.
    pub fn new(aggregates: &[Aggregate]) -> Result<Self> {
        let mut builder = Builder::default();
        let mut outputs = Vec::with_capacity(aggregates.len());
        for aggregate in aggregates {
            let mut slots = Vec::new();
            aggregate.for_columns(|column| {
                let slot = builder.slot(column);
                if !slots.contains(&slot) {
                    slots.push(slot);
                }
            });
            let step = match aggregate {
                Aggregate::CountRows | Aggregate::Count(_) => Step::Count,
                Aggregate::Sum(expr) => Step::Sum(builder.term(expr)?),
                Aggregate::Min(expr) => Step::Min(builder.term(expr)?),
                Aggregate::Max(expr) => Step::Max(builder.term(expr)?),
                Aggregate::SumFloat(expr) => Step::SumFloat(builder.float(expr)),
            };
            outputs.push(Output { step, slots });
        }
        Ok(Program { columns: builder.columns, roots: builder.roots, outputs })
    }
}

impl Builder {
    fn slot(&mut self, column: usize) -> usize {
        match self.columns.iter().position(|c| *c == column) {
            Some(slot) => slot,
            None => {
                self.columns.push(column);
                self.columns.len() - 1
            }
        }
    }

    fn root(&mut self, root: Root) -> usize {
        *self.known.entry(root).or_insert_with(|| {
            self.roots.push(root);
            self.roots.len() - 1
        })
    }

    fn column(&mut self, column: usize) -> usize {
        let slot = self.slot(column);
        self.root(Root::Column(slot))
    }

    fn term(&mut self, expr: &Expr) -> Result<Term> {
        Ok(match expr {
            Expr::Column(column) => over(self.column(*column)),
            Expr::Literal(value) => Term { root: None, factor: 0, offset: *value },
            Expr::Add(a, b) => {
                let (a, b) = (self.term(a)?, self.term(b)?);
                self.add(a, b)?
            }
            Expr::Sub(a, b) => {
                let (a, b) = (self.term(a)?, self.term(b)?);
                self.add(a, scale(b, -1)?)?
            }
            Expr::Mul(a, b) => {
                let (a, b) = (self.term(a)?, self.term(b)?);
                match (a.root, b.root) {
                    (_, None) => scale(a, b.offset)?,
                    (None, _) => scale(b, a.offset)?,
                    _ => over(self.root(Root::Mul(a, b))),
                }
            }
        })
    }

    fn add(&mut self, a: Term, b: Term) -> Result<Term> {
        let offset = a.offset.checked_add(b.offset).ok_or_else(too_large)?;
        Ok(match (a.root, b.root) {
            (_, None) => Term { offset, ..a },
            (None, _) => Term { offset, ..b },
            (x, y) if x == y => {
                let factor = a.factor.checked_add(b.factor).ok_or_else(too_large)?;
                Term { root: x, factor, offset }
            }
            _ => over(self.root(Root::Add(a, b))),
        })
    }

    fn float(&mut self, expr: &FloatExpr) -> FloatNode {
        match expr {
            FloatExpr::Column(column, width) => FloatNode::Column(self.column(*column), *width),
            FloatExpr::Integer(column, by) => FloatNode::Integer(self.column(*column), *by),
            FloatExpr::Literal(value) => FloatNode::Literal(*value),
            FloatExpr::Add(a, b) => {
                FloatNode::Add(Box::new(self.float(a)), Box::new(self.float(b)))
            }
            FloatExpr::Sub(a, b) => {
                FloatNode::Sub(Box::new(self.float(a)), Box::new(self.float(b)))
            }
            FloatExpr::Mul(a, b) => {
                FloatNode::Mul(Box::new(self.float(a)), Box::new(self.float(b)))
            }
        }
    }
}

fn over(root: usize) -> Term {
    Term { root: Some(root), factor: 1, offset: 0 }
}

fn scale(term: Term, by: i128) -> Result<Term> {
    match (term.factor.checked_mul(by), term.offset.checked_mul(by)) {
        (Some(factor), Some(offset)) => Ok(Term { factor, offset, ..term }),
        _ => Err(too_large()),
    }
}

fn too_large() -> Error {
    Error::Invalid("numbers in an expression are over 128 bits".into())
}
