//! Plan nodes that pass the rows of their input on, looked at or in another form, in its order and partitions.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

/// What is done with the rows of an input.
pub(crate) trait Through: fmt::Debug + Send + Sync + 'static {
    /// Name of the node in a plan.
    fn name(&self) -> &'static str;

    /// The rows of a partition, of the input's columns, in the types of the node.
    ///
    /// # Errors
    /// When it cannot begin.
    fn pass(
        &self,
        rows: SendableRecordBatchStream,
        context: &TaskContext,
    ) -> Result<SendableRecordBatchStream>;
}

/// A plan node of a [`Through`].
#[derive(Debug)]
pub(crate) struct ThroughExec {
    input: Arc<dyn ExecutionPlan>,
    through: Arc<dyn Through>,
    /// Where its rows have other types than those of the input.
    retyped: Option<Arc<PlanProperties>>,
}

impl ThroughExec {
    /// Puts `through` above a node.
    pub(crate) fn above(
        input: Arc<dyn ExecutionPlan>,
        through: Arc<dyn Through>,
    ) -> Arc<dyn ExecutionPlan> {
        Arc::new(ThroughExec { input, through, retyped: None })
    }

    /// Puts `through` above a node whose rows it gives in other types, with these properties.
    pub(crate) fn between(
        input: Arc<dyn ExecutionPlan>,
        through: Arc<dyn Through>,
        properties: Arc<PlanProperties>,
    ) -> Arc<dyn ExecutionPlan> {
        Arc::new(ThroughExec { input, through, retyped: Some(properties) })
    }
}

impl DisplayAs for ThroughExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.through.name())
    }
}

impl ExecutionPlan for ThroughExec {
    fn name(&self) -> &'static str {
        self.through.name()
    }

    fn schema(&self) -> SchemaRef {
        match &self.retyped {
            Some(properties) => Arc::clone(properties.equivalence_properties().schema()),
            None => self.input.schema(),
        }
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.retyped.as_ref().unwrap_or_else(|| self.input.properties())
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) if children.is_empty() => {
                let (through, retyped) = (Arc::clone(&self.through), self.retyped.clone());
                Ok(Arc::new(ThroughExec { input, through, retyped }))
            }
            _ => datafusion::common::internal_err!("{} has one input", self.through.name()),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, recompute)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, Arc::clone(&context))?;
        self.through.pass(rows, &context)
    }
}
