//! A filter and expressions of `coload load`, in SQL.
//!
//! ```text
//!   --where  'price > 0'                 rows for which it is true are kept
//!   --select 'id, price * 2 AS double'   the columns that are made of the others
//! ```
//!
//! An expression that fails for some rows is evaluated for halves of them until it is known for which. What
//! differs from one evaluation to the next, as random() does, is refused; now() is when the load began.
//!
//! Cost: the columns that are looked at become Arrow arrays; new values are copied out of theirs.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use coload_ddl::{CheckedColumn, Schema};
use coload_load::{RowProgram, RowsMade};
use coload_scan::Predicate;
use coload_types::{Column, DataType, Error, Plain, Result};
use coload_wire::RowSql;
use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{ArrayRef, UInt32Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::arrow::datatypes::{DataType as ArrowType, Schema as ArrowSchema};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, Volatility};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::prelude::SessionConfig;
use datafusion::sql::sqlparser::ast::{Expr as SqlExpr, ExprWithAlias, Ident, SelectItem};

use crate::arrays::array_of;
use crate::error::{from_datafusion, to_datafusion};
use crate::filter::tests_of;
use crate::functions::session_builder;
use crate::planning::on_large_stack;
use crate::rows::ColumnRows;
use crate::rules;
use crate::statement::StatementLimits;
use crate::statement::hints::expression_error;
use crate::statement::text::{parse_expression, parse_items};
use crate::statement::tree::check_expression;
use crate::types::{arrow_schema, check_name, sql_type};

/// Levels of an expression that is evaluated on a worker's stack of 2 MiB, at up to some hundred bytes each.
const LEVELS_MAX: usize = 1_000;

/// A filter and expressions, planned.
#[derive(Debug)]
struct SqlProgram {
    sql: RowSql,
    /// The table that the columns are for, if it is known.
    table: Option<Schema>,
    schema: Schema,
    sources: Vec<Option<usize>>,
    uses: Vec<usize>,
    read: Schema,
    /// Of the columns used, in their order.
    batch: Arc<ArrowSchema>,
    filter: Option<Arc<dyn PhysicalExpr>>,
    /// Tests of columns that are read, which rows pass that the filter keeps.
    tests: Vec<Predicate>,
    /// For each column made that is new, its expression.
    made: Vec<Option<Arc<dyn PhysicalExpr>>>,
}

/// Plans a filter and expressions over columns that are read, for the columns of a table if it is known, in a load
/// that began at `began_us`, microseconds since the epoch.
///
/// # Errors
/// `Invalid` that names the flag, when one is wrong or does not fit the columns.
pub fn plan_row_program(
    sql: &RowSql,
    read: &Schema,
    table: Option<&Schema>,
    began_us: i64,
) -> Result<Arc<dyn RowProgram>> {
    Ok(Arc::new(on_large_stack(|| plan(sql, read, table, began_us))?))
}

fn plan(sql: &RowSql, read: &Schema, table: Option<&Schema>, began_us: i64) -> Result<SqlProgram> {
    let state = session(began_us)?;
    let all =
        DFSchema::try_from(ArrowSchema::clone(&arrow_schema(read))).map_err(from_datafusion)?;
    let planner = Planner { state: &state, read, schema: &all };
    let in_where = |e: Error| in_flag("--where", &e);
    let filter = match &sql.filter {
        None => None,
        Some(text) => Some(
            parse_expression(text, &StatementLimits::default())
                .and_then(|e| planner.logical(e))
                .map_err(in_where)?,
        ),
    };
    let items = select_items(sql, read).and_then(|items| {
        let planned = |item: Item| Ok((item.name, planner.logical(item.expr)?));
        items.into_iter().map(planned).collect::<Result<Vec<_>>>()
    });
    let mut made = Vec::new();
    for (name, expr) in items.map_err(|e| in_flag("--select", &e))? {
        check_name(&name).map_err(|e| in_flag("--select", &e))?;
        let in_table = in_table(&name, table)?;
        let same = same_column(&expr, in_table, read);
        made.push(MadeColumn { name, expr, in_table, same });
    }
    let uses = used_columns(filter.as_ref(), &made, read);
    let fields: Vec<_> = uses.iter().map(|c| arrow_schema(read).field(*c).clone()).collect();
    let batch = ArrowSchema::new(fields);
    let used = DFSchema::try_from(batch.clone()).map_err(from_datafusion)?;
    let ready = |expr: &Expr| physical(&state, expr.clone(), &used).map_err(from_datafusion);
    let tests = match &filter {
        Some(filter) => tests_of_filter(&state, filter, (read, &used)).map_err(in_where)?,
        None => Vec::new(),
    };
    let filter = filter.as_ref().map(ready).transpose().map_err(in_where)?;
    if let Some(filter) = &filter {
        let data_type = filter.data_type(&batch).map_err(from_datafusion)?;
        if data_type != ArrowType::Boolean {
            return Err(Error::Invalid(format!("--where: is {data_type}, not true or false")));
        }
    }
    let (mut columns, mut exprs) = (Vec::new(), Vec::new());
    for one in &made {
        let expr = match one.same {
            Some(_) => None,
            None => {
                Some(ready(&one.expr).map_err(|e| in_flag(&format!("--select {}", one.name), &e))?)
            }
        };
        columns.push(one.column(expr.as_ref(), &batch, read)?);
        exprs.push(expr);
    }
    Ok(SqlProgram {
        sql: sql.clone(),
        table: table.cloned(),
        schema: Schema::new(columns)?,
        sources: made.iter().map(|one| one.same).collect(),
        uses,
        read: read.clone(),
        batch: Arc::new(batch),
        filter,
        tests,
        made: exprs,
    })
}

/// A column that is made.
struct MadeColumn<'a> {
    name: String,
    expr: Expr,
    in_table: Option<&'a Column>,
    /// The column read that it is, if it is one without a change.
    same: Option<usize>,
}

impl MadeColumn<'_> {
    fn column(
        &self,
        expr: Option<&Arc<dyn PhysicalExpr>>,
        batch: &ArrowSchema,
        read: &Schema,
    ) -> Result<Column> {
        let name = &self.name;
        match (self.same, self.in_table, expr) {
            (_, Some(column), _) => Ok(column.clone()),
            (Some(index), ..) => Ok(Column { name: name.clone(), ..read.columns()[index].clone() }),
            (None, None, Some(expr)) => {
                let data_type = expr.data_type(batch).map_err(from_datafusion)?;
                Ok(Column::new(name, made_type(name, &data_type)?))
            }
            (None, None, None) => {
                Err(Error::Invalid(format!("--select {name}: has no expression")))
            }
        }
    }
}

fn select_items(sql: &RowSql, read: &Schema) -> Result<Vec<Item>> {
    match &sql.select {
        None => Ok(read.columns().iter().map(|c| Item::column(&c.name)).collect()),
        Some(text) => parse_select(text, read),
    }
}

/// The columns that some expression looks at; those that stay as they are need not be looked at.
fn used_columns(filter: Option<&Expr>, made: &[MadeColumn<'_>], read: &Schema) -> Vec<usize> {
    let new = made.iter().filter(|one| one.same.is_none()).map(|one| &one.expr);
    let exprs: Vec<&Expr> = filter.into_iter().chain(new).collect();
    let is_used = |column: &usize| {
        let name = &read.columns()[*column].name;
        exprs.iter().any(|expr| expr.column_refs().iter().any(|r| r.name == *name))
    };
    (0..read.len()).filter(is_used).collect()
}

/// The column read that an expression is, if it goes into the table as it is.
fn same_column(expr: &Expr, in_table: Option<&Column>, read: &Schema) -> Option<usize> {
    let Expr::Column(name) = expr else { return None };
    let index = read.columns().iter().position(|c| c.name == name.name)?;
    let own = &read.columns()[index];
    let fits =
        |column: &Column| own.data_type == column.data_type && (column.nullable || !own.nullable);
    in_table.is_none_or(fits).then_some(index)
}

/// The tests that parts of a filter are which are joined by AND; none of one that is another at another time, as inputs may be looked at
/// before it is known when the load began.
fn tests_of_filter(
    state: &SessionState,
    filter: &Expr,
    (read, used): (&Schema, &DFSchema),
) -> Result<Vec<Predicate>> {
    let is_of_its_time = |part: &Expr| match part {
        Expr::ScalarFunction(called) => called.func.signature().volatility != Volatility::Immutable,
        _ => false,
    };
    if filter.exists(|part| Ok(is_of_its_time(part))).map_err(from_datafusion)? {
        return Ok(Vec::new());
    }
    let filter = simplified(state, filter.clone(), used).map_err(from_datafusion)?;
    let parts = split_conjunction(&filter).into_iter();
    Ok(parts.filter_map(|part| tests_of(part, read)).flatten().collect())
}

/// Makes an expression ready to run; some functions must be rewritten first.
fn physical(
    state: &SessionState,
    expr: Expr,
    schema: &DFSchema,
) -> DataFusionResult<Arc<dyn PhysicalExpr>> {
    let expr = simplified(state, expr, schema)?;
    let made = state.create_physical_expr(expr, schema)?;
    match is_deeper(&made, LEVELS_MAX) {
        false => Ok(made),
        true => Err(to_datafusion(Error::Limit(format!(
            "an expression of more than {LEVELS_MAX} levels or terms of AND and OR"
        )))),
    }
}

/// An expression as it is evaluated.
fn simplified(state: &SessionState, expr: Expr, schema: &DFSchema) -> DataFusionResult<Expr> {
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(schema.clone()))
        .with_config_options(Arc::clone(state.config_options()))
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    let simplifier = ExprSimplifier::new(context);
    simplifier.simplify(rules::analyze_expr(state, expr, schema)?)
}

/// Whether an expression has more levels than those. Rows are evaluated on threads with stacks of their own.
fn is_deeper(expr: &Arc<dyn PhysicalExpr>, levels: usize) -> bool {
    levels == 0 || expr.children().into_iter().any(|child| is_deeper(child, levels - 1))
}

fn in_table<'a>(name: &str, table: Option<&'a Schema>) -> Result<Option<&'a Column>> {
    let Some(table) = table else { return Ok(None) };
    match table.position(name) {
        Some(position) => Ok(Some(&table.columns()[position])),
        None => Err(Error::Invalid(format!(
            "--select: the table has no column {name} (AS gives an expression the name of its column)"
        ))),
    }
}

fn made_type(name: &str, arrow: &ArrowType) -> Result<DataType> {
    sql_type(arrow).ok_or_else(|| {
        Error::Invalid(format!("--select {name}: is {arrow}, which a table cannot hold (use CAST)"))
    })
}

fn in_flag(flag: &str, error: &Error) -> Error {
    Error::Invalid(format!("{flag}: {error}"))
}

/// Expressions are planned as of `began_us`, microseconds since the epoch.
fn session(began_us: i64) -> Result<SessionState> {
    let since = Duration::from_micros(began_us.unsigned_abs());
    let began = match began_us {
        0.. => SystemTime::UNIX_EPOCH.checked_add(since),
        _ => SystemTime::UNIX_EPOCH.checked_sub(since),
    };
    let began = began.ok_or_else(|| Error::Invalid(format!("a load that began at {began_us}")))?;
    let mut config = SessionConfig::new();
    // 0.05 is a decimal, as in the statements of a store.
    config.options_mut().sql_parser.parse_float_as_decimal = true;
    let builder = session_builder().with_config(config);
    let mut state = rules::build(builder).map_err(from_datafusion)?;
    state.mark_start_execution();
    // now() is the same for all rows and attempts.
    state.execution_props_mut().query_execution_start_time = Some(began.into());
    Ok(state)
}

/// An expression and the name of what it makes.
struct Item {
    name: String,
    expr: SqlExpr,
}

impl Item {
    fn column(name: &str) -> Self {
        Item { name: name.to_owned(), expr: SqlExpr::Identifier(Ident::with_quote('"', name)) }
    }
}

fn parse_select(text: &str, read: &Schema) -> Result<Vec<Item>> {
    let parsed = parse_items(text, &StatementLimits::default())?;
    let mut items = Vec::new();
    for item in parsed {
        match item {
            SelectItem::Wildcard(options) if options.to_string().is_empty() => {
                items.extend(read.columns().iter().map(|column| Item::column(&column.name)));
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                items.push(Item { name: alias.value, expr });
            }
            SelectItem::UnnamedExpr(SqlExpr::Identifier(name)) => {
                let position = read.position(&name.value);
                let stored = position.map_or(&name.value, |p| &read.columns()[p].name).clone();
                items.push(Item { name: stored, expr: SqlExpr::Identifier(name) });
            }
            other => {
                return Err(Error::Invalid(format!("{other} needs a name: {other} AS name")));
            }
        }
    }
    Ok(items)
}

/// What expressions are planned with.
struct Planner<'a> {
    state: &'a SessionState,
    read: &'a Schema,
    schema: &'a DFSchema,
}

impl Planner<'_> {
    fn logical(&self, mut expr: SqlExpr) -> Result<Expr> {
        // Names are found without regard to case, quoted or not.
        check_expression(&mut expr, &StatementLimits::default(), self.read)?;
        let written = expr.to_string();
        let expr = ExprWithAlias { expr, alias: None };
        let planned = self.state.create_logical_expr_from_sql_expr(expr, self.schema);
        let planned = planned.map_err(expression_error)?;
        if planned.exists(|part| Ok(looks_beyond_its_row(part))).map_err(from_datafusion)? {
            return Err(Error::Invalid(format!(
                "{} looks beyond its row: aggregates, windows, subqueries and parameters are for queries, after the load",
                written
            )));
        }
        if planned.exists(|part| Ok(matches!(part, Expr::Unnest(_)))).map_err(from_datafusion)? {
            return Err(Error::Invalid(format!(
                "{written} makes several rows of one: load the list, and unnest it in queries (--unnest makes a row of each item of \
                 a list of JSON)"
            )));
        }
        if planned.is_volatile() {
            return Err(Error::Invalid(format!("{planned} differs each time it is asked")));
        }
        Ok(planned)
    }
}

/// Whether a part of an expression cannot be told from one row.
fn looks_beyond_its_row(part: &Expr) -> bool {
    matches!(
        part,
        Expr::AggregateFunction(_)
            | Expr::WindowFunction(_)
            | Expr::ScalarSubquery(_)
            | Expr::Exists(_)
            | Expr::InSubquery(_)
            | Expr::SetComparison(_)
            | Expr::Placeholder(_)
    )
}

impl RowProgram for SqlProgram {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn sources(&self) -> &[Option<usize>] {
        &self.sources
    }

    fn uses(&self) -> &[usize] {
        &self.uses
    }

    fn sql(&self) -> &RowSql {
        &self.sql
    }

    fn tests(&self) -> &[Predicate] {
        &self.tests
    }

    fn for_load(&self, read: &Schema, began_us: i64) -> Result<Arc<dyn RowProgram>> {
        Ok(Arc::new(on_large_stack(|| plan(&self.sql, read, self.table.as_ref(), began_us))?))
    }

    fn run(&self, columns: &[Option<CheckedColumn<'_>>], rows: usize) -> Result<RowsMade> {
        let mut batch = self.batch(columns, rows)?;
        let mut failed = Vec::new();
        let mut kept = None;
        if let Some(filter) = &self.filter {
            let mut keep = Vec::new();
            each_row(&batch, 0, &mut failed, &mut |part, first| {
                let truths = filter.evaluate(part)?.into_array(part.num_rows())?;
                let truths = truths.as_boolean();
                let rows = (0..part.num_rows()).filter(|row| {
                    !datafusion::arrow::array::Array::is_null(truths, *row) && truths.value(*row)
                });
                keep.extend(rows.map(|row| first + row as u32));
                Ok(())
            });
            if failed.is_empty() && keep.len() < rows {
                batch = kept_rows(&batch, &keep).map_err(|e| Error::Corrupt(e.to_string()))?;
                kept = Some(keep);
            }
        }
        let mut made: Vec<Option<Plain>> = (self.schema.columns().iter().zip(&self.made))
            .map(|(column, expr)| expr.as_ref().map(|_| Plain::empty(column.data_type.physical())))
            .collect();
        if failed.is_empty() && batch.num_rows() > 0 {
            each_row(&batch, 0, &mut failed, &mut |part, _| self.make(part, &mut made));
            if let Some(kept) = &kept {
                failed.iter_mut().for_each(|(row, _)| *row = kept[*row as usize]);
            }
        }
        Ok(RowsMade { kept, columns: made, failed })
    }
}

impl SqlProgram {
    fn batch(&self, columns: &[Option<CheckedColumn<'_>>], rows: usize) -> Result<RecordBatch> {
        let array = |column: &usize| -> Result<ArrayRef> {
            let view = columns.get(*column).copied().flatten();
            let view =
                view.ok_or_else(|| Error::Corrupt(format!("column {column} is not there")))?;
            array_of(view, rows, self.read.columns()[*column].data_type)
        };
        let arrays = self.uses.iter().map(array).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.batch), arrays, &options)
            .map_err(|e| Error::Corrupt(e.to_string()))
    }

    /// Adds the values made of some rows.
    fn make(&self, part: &RecordBatch, made: &mut [Option<Plain>]) -> DataFusionResult<()> {
        let mut new = Vec::with_capacity(made.len());
        for (expr, column) in self.made.iter().zip(self.schema.columns()) {
            let Some(expr) = expr else { continue };
            let mut rows = ColumnRows::new(column);
            let array = expr.evaluate(part)?.into_array(part.num_rows())?;
            rows.append(&array).map_err(to_datafusion)?;
            new.push(rows.into_plain());
        }
        // Only now: a row that fails is in none of the columns.
        made.iter_mut().flatten().zip(new).for_each(|(made, new)| append(made, new));
        Ok(())
    }
}

fn append(to: &mut Plain, more: Plain) {
    if to.is_empty() {
        *to = more;
        return;
    }
    (0..more.len()).for_each(|row| to.push(more.get(row).as_ref()));
}

/// The rows of these numbers. A batch without columns, of a condition that looks at none, has a count of rows only.
fn kept_rows(batch: &RecordBatch, keep: &[u32]) -> std::result::Result<RecordBatch, ArrowError> {
    if batch.num_columns() > 0 {
        return take_record_batch(batch, &UInt32Array::from(keep.to_vec()));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(keep.len()));
    RecordBatch::try_new_with_options(batch.schema(), Vec::new(), &options)
}

/// Does something for rows, for halves of them where it fails, and notes the rows for which it fails by
/// themselves. Of no rows none can fail: `1 / 0` would, and be left out for ever.
fn each_row(
    rows: &RecordBatch,
    first: u32,
    failed: &mut Vec<(u32, String)>,
    work: &mut impl FnMut(&RecordBatch, u32) -> DataFusionResult<()>,
) {
    let count = rows.num_rows();
    if count == 0 {
        return;
    }
    let Err(error) = work(rows, first) else { return };
    if count <= 1 {
        failed.push((first, from_datafusion(error).to_string()));
        return;
    }
    let half = count / 2;
    each_row(&rows.slice(0, half), first, failed, work);
    each_row(&rows.slice(half, count - half), first + half as u32, failed, work);
}

#[cfg(test)]
mod tests;
