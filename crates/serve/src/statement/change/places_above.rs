//! The place of each row, passed from the scan of a table up to the top of a plan.

use std::sync::Arc;

use datafusion::arrow::datatypes::Field;
use datafusion::catalog::TableProvider;
use datafusion::catalog::default_table_source::{DefaultTableSource, provider_as_source};
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::{
    Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias, TableScan,
};

use super::shape::Kind;
use crate::cluster::ClusterTable;
use crate::places::PLACE;
use crate::table::StoreTable;

pub(super) type Placed<T> = datafusion::error::Result<Result<T, &'static str>>;

/// The plan with the places of the rows of a table after its columns; of a DELETE, with the places only.
pub(super) fn with_places(plan: LogicalPlan, table: u64, kind: Kind) -> Placed<LogicalPlan> {
    let LogicalPlan::Projection(Projection { expr, input, schema, .. }) = plan else {
        return Ok(Err("an aggregate or a window"));
    };
    let mut input = input.as_ref().clone();
    if let LogicalPlan::Projection(values) = &mut input {
        values.expr.iter_mut().for_each(|value| give_type(value, &schema));
    }
    let (input, place) = match place_below(input, table)? {
        Ok(found) => found,
        Err(what) => return Ok(Err(what)),
    };
    let mut exprs = if kind == Kind::Update { expr } else { Vec::new() };
    exprs.push(Expr::Column(place).alias(PLACE));
    Ok(Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?)))
}

/// Gives an item that is a parameter the type of the column of its name.
fn give_type(item: &mut Expr, columns: &DFSchema) {
    let Expr::Alias(alias) = item else { return };
    if let Ok(column) = columns.field_with_unqualified_name(&alias.name) {
        let value = std::mem::take(alias.expr.as_mut());
        *alias.expr = typed(value, column);
    }
}

/// Gives a parameter that is a value by itself the type of its column, as INSERT does.
pub(super) fn typed(value: Expr, column: &Field) -> Expr {
    match value {
        Expr::Placeholder(mut parameter) if parameter.field.is_none() => {
            let data_type = column.data_type().clone();
            parameter.field = Some(Arc::new(Field::new(&parameter.id, data_type, true)));
            Expr::Placeholder(parameter)
        }
        value => value,
    }
}

/// A part of the plan whose rows are those of the table, and the column that tells their places.
pub(super) fn place_below(plan: LogicalPlan, table: u64) -> Placed<(LogicalPlan, Column)> {
    macro_rules! below {
        ($input:expr) => {
            match place_below($input.as_ref().clone(), table)? {
                Ok(found) => found,
                Err(what) => return Ok(Err(what)),
            }
        };
    }
    match plan {
        LogicalPlan::TableScan(scan) => scan_with_places(scan, table),
        LogicalPlan::Filter(filter) => {
            let (input, place) = below!(filter.input);
            let filter = Filter::try_new(filter.predicate, Arc::new(input))?;
            Ok(Ok((LogicalPlan::Filter(filter), place)))
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let (input, place) = below!(alias.input);
            let relation = alias.alias.clone();
            let alias = SubqueryAlias::try_new(Arc::new(input), alias.alias)?;
            Ok(Ok((LogicalPlan::SubqueryAlias(alias), Column::new(Some(relation), place.name))))
        }
        LogicalPlan::Projection(Projection { mut expr, input, .. }) => {
            let (input, place) = below!(input);
            expr.push(Expr::Column(place).alias(PLACE));
            let projection = Projection::try_new(expr, Arc::new(input))?;
            Ok(Ok((LogicalPlan::Projection(projection), Column::new_unqualified(PLACE))))
        }
        _ => Ok(Err("an aggregate or a window")),
    }
}

/// The table of which a part of the plan is, perhaps under another name.
pub(super) fn placed_table(plan: &LogicalPlan, table: u64) -> Option<&dyn TableProvider> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            with_place_column(scan, table)?;
            let source = scan.source.downcast_ref::<DefaultTableSource>()?;
            Some(source.table_provider.as_ref())
        }
        LogicalPlan::SubqueryAlias(alias) => placed_table(&alias.input, table),
        _ => None,
    }
}

/// The table of a scan with the places of its rows, if it is the one of this id in the store.
fn with_place_column(scan: &TableScan, table: u64) -> Option<Arc<dyn TableProvider>> {
    let source = scan.source.downcast_ref::<DefaultTableSource>()?;
    if let Some(stored) = source.table_provider.downcast_ref::<StoreTable>() {
        return (stored.entry().id == table).then(|| Arc::new(stored.with_places()) as _);
    }
    let of_cluster = source.table_provider.downcast_ref::<ClusterTable>()?;
    (of_cluster.own_id() == table).then(|| Arc::new(of_cluster.with_places()) as _)
}

fn scan_with_places(scan: TableScan, table: u64) -> Placed<(LogicalPlan, Column)> {
    let Some(placed) = with_place_column(&scan, table) else {
        return Ok(Err("a table that is not of the store"));
    };
    let source = provider_as_source(placed);
    let name = scan.table_name;
    let plan = LogicalPlanBuilder::scan(name.clone(), source, None)?.build()?;
    Ok(Ok((plan, Column::new(Some(name), PLACE))))
}
