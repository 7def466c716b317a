//! What a plan may be made of: the second list of what is allowed, after that of the tree. A plan that changes, writes or
//! reads anything but tables of the catalog does not run, whatever statement it was made of.

use coload_types::{Error, Result};
use datafusion::catalog::default_table_source::DefaultTableSource;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;

use crate::error::from_datafusion;

/// Refuses a plan with a node that only reads nothing.
///
/// # Errors
/// `Refused` with the name of the node.
pub(super) fn check_nodes(plan: &LogicalPlan) -> Result<()> {
    let mut refused = None;
    plan.apply_with_subqueries(|node| {
        refused = refused_node(node);
        Ok(match refused {
            Some(_) => TreeNodeRecursion::Stop,
            None => TreeNodeRecursion::Continue,
        })
    })
    .map_err(from_datafusion)?;
    match refused {
        None => Ok(()),
        Some(node) => {
            Err(Error::Refused(format!("the statement would plan {node}, which none may")))
        }
    }
}

fn refused_node(node: &LogicalPlan) -> Option<&'static str> {
    match node {
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Join(_)
        | LogicalPlan::Repartition(_)
        | LogicalPlan::Union(_)
        | LogicalPlan::EmptyRelation(_)
        | LogicalPlan::Subquery(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Values(_)
        | LogicalPlan::Explain(_)
        | LogicalPlan::Analyze(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Unnest(_)
        | LogicalPlan::DescribeTable(_)
        | LogicalPlan::RecursiveQuery(_) => None,
        // Tables come from the catalog and the listed table functions only; what would read files is none of them.
        LogicalPlan::TableScan(scan) => {
            let known = scan.source.downcast_ref::<DefaultTableSource>().is_some();
            (!known).then_some("a scan of something that is no table")
        }
        LogicalPlan::Statement(_) => Some("a statement within a plan"),
        LogicalPlan::Dml(_) => Some("a change"),
        LogicalPlan::Ddl(_) => Some("a change of the catalog"),
        LogicalPlan::Copy(_) => Some("COPY"),
        LogicalPlan::Extension(_) => Some("an extension"),
    }
}
