//! DataFusion's expressions as those of [`coload_scan::aggregate`].
//!
//! A DECIMAL is its unscaled value there, so that a change of scale is a multiplication by a power of
//! ten. `None` means that an expression cannot be said exactly.

use coload_ddl::Schema;
use coload_scan::Predicate;
use coload_scan::aggregate::{Aggregate, Expr, FloatExpr, FloatWidth, Query};
use coload_types::{DataType, Physical};
use datafusion::arrow::datatypes::{DataType as ArrowType, SchemaRef};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::scalar::ScalarValue;

use crate::cluster::ClusterScanExec;
use crate::external::ExternalScanExec;
use crate::rules::{Arithmetic, Operation};
use crate::scan::StoreScanExec;

/// What an output column is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Index in the query's aggregates.
    pub aggregate: usize,
    pub kind: OutputKind,
    pub arrow: ArrowType,
}

/// How the number of an aggregate becomes a value.
#[derive(Debug, Clone, PartialEq)]
pub enum OutputKind {
    Count,
    /// An exact number of the output's type.
    Exact,
    /// A value of a column of this type.
    Stored(DataType),
    /// Exact sum times this, divided by the count.
    DecimalAverage(i128),
    /// Exact sum divided by the count, as a float.
    IntegerAverage,
    Float,
    FloatAverage,
}

/// A scan whose tests are exact.
#[derive(Clone, Copy)]
pub enum Scan<'a> {
    Store(&'a StoreScanExec),
    Inputs(&'a ExternalScanExec),
    Leaves(&'a ClusterScanExec),
}

impl<'a> Scan<'a> {
    /// The scan that a node is; `None` for other nodes, and where a number of rows is enough.
    fn of(plan: &'a dyn ExecutionPlan) -> Option<Self> {
        if let Some(scan) = plan.downcast_ref::<StoreScanExec>() {
            return scan.limit().is_none().then_some(Scan::Store(scan));
        }
        if let Some(scan) = plan.downcast_ref::<ClusterScanExec>() {
            return (!scan.is_limited()).then_some(Scan::Leaves(scan));
        }
        let scan = plan.downcast_ref::<ExternalScanExec>()?;
        scan.limit().is_none().then_some(Scan::Inputs(scan))
    }

    fn schema(self) -> SchemaRef {
        match self {
            Scan::Store(scan) => scan.schema(),
            Scan::Inputs(scan) => scan.schema(),
            Scan::Leaves(scan) => scan.schema(),
        }
    }

    /// The columns that segments have.
    pub fn columns(self) -> &'a Schema {
        match self {
            Scan::Store(scan) => scan.table().columns(),
            Scan::Inputs(scan) => scan.columns(),
            Scan::Leaves(scan) => scan.columns(),
        }
    }

    /// Which of them a column of the output is.
    fn column(self, output: usize) -> Option<usize> {
        match self {
            Scan::Store(scan) => scan.projection().get(output).copied(),
            Scan::Leaves(scan) => scan.projection().get(output).copied(),
            Scan::Inputs(scan) => (output < scan.schema().fields().len()).then_some(output),
        }
    }

    /// Tests that each row passes.
    pub fn predicates(self) -> &'a [Predicate] {
        match self {
            Scan::Store(scan) => scan.predicates(),
            Scan::Inputs(scan) => scan.tests(),
            Scan::Leaves(scan) => scan.tests(),
        }
    }
}

/// The input of an aggregate: a scan, with projections between.
pub struct Input<'a> {
    scan: Scan<'a>,
    /// From the aggregate down.
    projections: Vec<&'a ProjectionExec>,
}

/// An exact expression, and the digits after the point of its unscaled numbers.
struct Scaled {
    expr: Expr,
    scale: i8,
}

impl<'a> Input<'a> {
    /// Looks through projections for a scan.
    pub fn find(mut plan: &'a dyn ExecutionPlan) -> Option<Self> {
        let mut projections = Vec::new();
        loop {
            if let Some(scan) = Scan::of(plan) {
                return Some(Input { scan, projections });
            }
            let projection = plan.downcast_ref::<ProjectionExec>()?;
            plan = projection.input().as_ref();
            projections.push(projection);
        }
    }

    pub fn scan(&self) -> Scan<'a> {
        self.scan
    }

    fn schema(&self, depth: usize) -> SchemaRef {
        match self.projections.get(depth) {
            Some(projection) => projection.schema(),
            None => self.scan.schema(),
        }
    }

    /// What stands behind a column of the output of projection `depth`.
    fn behind(&self, column: &Column, depth: usize) -> Option<Behind<'a>> {
        Some(match self.projections.get(depth) {
            Some(projection) => Behind::Expr(&projection.expr().get(column.index())?.expr),
            None => Behind::Column(self.scan.column(column.index())?),
        })
    }

    /// The column of segments that an expression is.
    pub fn column(&self, expr: &dyn PhysicalExpr, depth: usize) -> Option<usize> {
        let column = expr.downcast_ref::<Column>()?;
        match self.behind(column, depth)? {
            Behind::Column(column) => Some(column),
            Behind::Expr(expr) => self.column(expr.as_ref(), depth + 1),
        }
    }

    fn data_type(&self, column: usize) -> DataType {
        self.scan.columns().columns()[column].data_type
    }

    fn exact(&self, expr: &dyn PhysicalExpr, depth: usize) -> Option<Scaled> {
        if let Some(column) = expr.downcast_ref::<Column>() {
            return match self.behind(column, depth)? {
                Behind::Expr(expr) => self.exact(expr.as_ref(), depth + 1),
                Behind::Column(column) => {
                    let (_, scale) = digits(&crate::types::arrow_type(self.data_type(column)))?;
                    Some(Scaled { expr: Expr::Column(column), scale })
                }
            };
        }
        if let Some(literal) = expr.downcast_ref::<Literal>() {
            return number(literal.value());
        }
        let schema = self.schema(depth);
        let of = expr.data_type(&schema).ok()?;
        let (precision, scale) = digits(&of)?;
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            let from = cast.expr().data_type(&schema).ok()?;
            let (from_precision, from_scale) = digits(&from)?;
            // Casts that can fail stay with DataFusion.
            let widens = i16::from(precision) - i16::from(scale)
                >= i16::from(from_precision) - i16::from(from_scale);
            let inner = self.exact(cast.expr().as_ref(), depth).filter(|_| widens)?;
            return rescale(inner, scale);
        }
        let (operation, left, right) = arithmetic(expr)?;
        let (left, right) = (self.exact(left, depth)?, self.exact(right, depth)?);
        let expr = match operation {
            Operation::Add => rescale(left, scale)?.expr.plus(rescale(right, scale)?.expr),
            Operation::Subtract => rescale(left, scale)?.expr.minus(rescale(right, scale)?.expr),
            Operation::Multiply if left.scale.checked_add(right.scale) == Some(scale) => {
                left.expr.times(right.expr)
            }
            _ => return None,
        };
        Some(Scaled { expr, scale })
    }

    fn float(&self, expr: &dyn PhysicalExpr, depth: usize) -> Option<FloatExpr> {
        if let Some(column) = expr.downcast_ref::<Column>() {
            return match self.behind(column, depth)? {
                Behind::Expr(expr) => self.float(expr.as_ref(), depth + 1),
                Behind::Column(column) => match self.data_type(column) {
                    DataType::Double => Some(FloatExpr::Column(column, FloatWidth::Double)),
                    _ => None,
                },
            };
        }
        if let Some(literal) = expr.downcast_ref::<Literal>() {
            return match literal.value() {
                ScalarValue::Float64(Some(v)) => Some(FloatExpr::Literal(*v)),
                _ => None,
            };
        }
        let schema = self.schema(depth);
        if expr.data_type(&schema).ok()? != ArrowType::Float64 {
            return None;
        }
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            let column = self.column(cast.expr().as_ref(), depth)?;
            return match self.data_type(column) {
                DataType::Real => Some(FloatExpr::Column(column, FloatWidth::Single)),
                other => {
                    let (_, scale) = digits(&crate::types::arrow_type(other))?;
                    Some(FloatExpr::Integer(column, 10f64.powi(scale.into())))
                }
            };
        }
        let (operation, left, right) = arithmetic(expr)?;
        let left = Box::new(self.float(left, depth)?);
        let right = Box::new(self.float(right, depth)?);
        match operation {
            Operation::Add => Some(FloatExpr::Add(left, right)),
            Operation::Subtract => Some(FloatExpr::Sub(left, right)),
            Operation::Multiply => Some(FloatExpr::Mul(left, right)),
            _ => None,
        }
    }
}

enum Behind<'a> {
    Column(usize),
    Expr(&'a std::sync::Arc<dyn PhysicalExpr>),
}

/// An operation and its operands.
fn arithmetic(
    expr: &dyn PhysicalExpr,
) -> Option<(Operation, &dyn PhysicalExpr, &dyn PhysicalExpr)> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let operation = call.fun().inner().downcast_ref::<Arithmetic>()?.operation();
    let [left, right] = call.args() else { return None };
    Some((operation, left.as_ref(), right.as_ref()))
}

/// Digits, and digits after the point, that a type's numbers have at most.
fn digits(arrow: &ArrowType) -> Option<(u8, i8)> {
    match arrow {
        ArrowType::Int16 => Some((5, 0)),
        ArrowType::Int32 => Some((10, 0)),
        ArrowType::Int64 => Some((19, 0)),
        ArrowType::Decimal128(precision, scale) if *scale >= 0 => Some((*precision, *scale)),
        _ => None,
    }
}

fn number(literal: &ScalarValue) -> Option<Scaled> {
    use ScalarValue as S;
    let (value, scale) = match literal {
        S::Int16(Some(v)) => (i128::from(*v), 0),
        S::Int32(Some(v)) => (i128::from(*v), 0),
        S::Int64(Some(v)) => (i128::from(*v), 0),
        S::Decimal128(Some(v), _, scale) if *scale >= 0 => (*v, *scale),
        _ => return None,
    };
    Some(Scaled { expr: Expr::Literal(value), scale })
}

fn rescale(from: Scaled, scale: i8) -> Option<Scaled> {
    let more = u32::try_from(scale.checked_sub(from.scale)?).ok()?;
    let expr = match more {
        0 => from.expr,
        _ => from.expr.times(Expr::Literal(10i128.checked_pow(more)?)),
    };
    Some(Scaled { expr, scale })
}

/// Adds an aggregate to a query, unless it is there already.
fn add(query: &mut Query, aggregate: Aggregate) -> usize {
    match query.aggregates.iter().position(|known| *known == aggregate) {
        Some(index) => index,
        None => {
            query.aggregates.push(aggregate);
            query.aggregates.len() - 1
        }
    }
}

/// Adds one of DataFusion's aggregates to a query and says what to make of it.
pub fn lower(
    function: &AggregateFunctionExpr,
    input: &Input<'_>,
    query: &mut Query,
) -> Option<Output> {
    if function.is_distinct() || !function.order_bys().is_empty() {
        return None;
    }
    let arguments = function.expressions();
    let [argument] = arguments.as_slice() else { return None };
    let argument = argument.as_ref();
    let arrow = function.field().data_type().clone();
    let (aggregate, kind) = match function.fun().name() {
        "count" => (count(argument, input)?, OutputKind::Count),
        "sum" => match &arrow {
            ArrowType::Float64 => {
                (Aggregate::SumFloat(input.float(argument, 0)?), OutputKind::Float)
            }
            ArrowType::Decimal128(..) => {
                (Aggregate::Sum(input.exact(argument, 0)?.expr), OutputKind::Exact)
            }
            _ => return None,
        },
        "avg" => average(argument, &arrow, input)?,
        "min" => extreme(argument, &arrow, input, Aggregate::Min)?,
        "max" => extreme(argument, &arrow, input, Aggregate::Max)?,
        _ => return None,
    };
    Some(Output { aggregate: add(query, aggregate), kind, arrow })
}

fn count(argument: &dyn PhysicalExpr, input: &Input<'_>) -> Option<Aggregate> {
    if let Some(literal) = argument.downcast_ref::<Literal>() {
        return (!literal.value().is_null()).then_some(Aggregate::CountRows);
    }
    if let Some(column) = input.column(argument, 0) {
        return Some(Aggregate::Count(vec![column]));
    }
    let mut columns = Vec::new();
    input.exact(argument, 0)?.expr.for_columns(&mut |column| columns.push(column));
    Some(Aggregate::Count(columns))
}

fn average(
    argument: &dyn PhysicalExpr,
    arrow: &ArrowType,
    input: &Input<'_>,
) -> Option<(Aggregate, OutputKind)> {
    match arrow {
        ArrowType::Decimal128(_, scale) => {
            let sum = input.exact(argument, 0)?;
            let more = u32::try_from(scale.checked_sub(sum.scale)?).ok()?;
            let kind = OutputKind::DecimalAverage(10i128.checked_pow(more)?);
            Some((Aggregate::Sum(sum.expr), kind))
        }
        ArrowType::Float64 => {
            let is_whole = argument.data_type(&input.schema(0)).ok()?.is_integer();
            match input.exact(argument, 0).filter(|_| is_whole) {
                Some(whole) => Some((Aggregate::Sum(whole.expr), OutputKind::IntegerAverage)),
                None => {
                    let sum = input.float(argument, 0)?;
                    Some((Aggregate::SumFloat(sum), OutputKind::FloatAverage))
                }
            }
        }
        _ => None,
    }
}

fn extreme(
    argument: &dyn PhysicalExpr,
    arrow: &ArrowType,
    input: &Input<'_>,
    make: fn(Expr) -> Aggregate,
) -> Option<(Aggregate, OutputKind)> {
    if let Some(column) = input.column(argument, 0) {
        let data_type = input.data_type(column);
        // The order of NaNs is DataFusion's matter.
        let ordered = !matches!(data_type, DataType::Real | DataType::Double);
        return (ordered && data_type.physical() != Physical::Bytes)
            .then(|| (make(Expr::Column(column)), OutputKind::Stored(data_type)));
    }
    digits(arrow)?;
    Some((make(input.exact(argument, 0)?.expr), OutputKind::Exact))
}
