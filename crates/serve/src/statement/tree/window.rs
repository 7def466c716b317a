//! Windows. Named ones are put in where their names stand: the planner would take `OVER (w ORDER BY x)` for a window
//! without the PARTITION BY of `w`.

use std::collections::HashMap;

use coload_types::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    Ident, NamedWindowDefinition, NamedWindowExpr, WindowFrame, WindowFrameBound, WindowSpec,
    WindowType,
};

use super::{WINDOW_COPIES_MAX, Walker, refuse};
use crate::names::fold;

impl Walker<'_> {
    /// Enters the windows of a SELECT. They are left with [`Self::leave_windows`].
    pub(super) fn enter_windows(&mut self, defined: &mut Vec<NamedWindowDefinition>) -> Result<()> {
        self.windows.push(HashMap::new());
        for NamedWindowDefinition(name, definition) in std::mem::take(defined) {
            let window = match definition {
                NamedWindowExpr::NamedWindow(other) => self.named(&other)?,
                NamedWindowExpr::WindowSpec(spec) => self.complete(spec)?,
            };
            if let Some(windows) = self.windows.last_mut()
                && windows.insert(fold(&name.value), window).is_some()
            {
                return Err(Error::Invalid(format!("window {name} is defined twice")));
            }
        }
        Ok(())
    }

    pub(super) fn leave_windows(&mut self) {
        self.windows.pop();
    }

    pub(super) fn over(&mut self, window: &mut WindowType) -> Result<()> {
        let spec = match window {
            WindowType::NamedWindow(name) => self.named(name)?,
            WindowType::WindowSpec(spec) => self.complete(spec.clone())?,
        };
        *window = WindowType::WindowSpec(spec);
        let WindowType::WindowSpec(WindowSpec {
            window_name: _,
            partition_by,
            order_by,
            window_frame,
        }) = window
        else {
            return Ok(());
        };
        self.exprs(partition_by)?;
        self.order_exprs(order_by)?;
        let Some(WindowFrame { units: _, start_bound, end_bound }) = window_frame else {
            return Ok(());
        };
        for bound in std::iter::once(start_bound).chain(end_bound) {
            match bound {
                WindowFrameBound::CurrentRow
                | WindowFrameBound::Preceding(None)
                | WindowFrameBound::Following(None) => {}
                WindowFrameBound::Preceding(Some(expr))
                | WindowFrameBound::Following(Some(expr)) => {
                    self.expr(expr)?;
                }
            }
        }
        Ok(())
    }

    fn named(&mut self, name: &Ident) -> Result<WindowSpec> {
        self.window_copies += 1;
        if self.window_copies > WINDOW_COPIES_MAX {
            return Err(Error::Limit(format!("windows used more than {WINDOW_COPIES_MAX} times")));
        }
        let found = self.windows.last().and_then(|windows| windows.get(&fold(&name.value)));
        found.cloned().ok_or_else(|| {
            Error::Invalid(format!("no window {name}: name it in WINDOW {name} AS (...)"))
        })
    }

    /// A window with what the one that it names gives it, by the rules of the standard.
    fn complete(&mut self, mut spec: WindowSpec) -> Result<WindowSpec> {
        let Some(name) = spec.window_name.take() else { return Ok(spec) };
        let base = self.named(&name)?;
        if !spec.partition_by.is_empty() {
            return refuse(&format!("PARTITION BY beside window {name}"), "the window has its own");
        }
        if base.window_frame.is_some() {
            return refuse(
                &format!("window {name}, which has a frame, in parentheses"),
                "write OVER w",
            );
        }
        if !base.order_by.is_empty() {
            if !spec.order_by.is_empty() {
                return refuse(&format!("ORDER BY beside window {name}"), "the window has its own");
            }
            spec.order_by = base.order_by;
        }
        spec.partition_by = base.partition_by;
        Ok(spec)
    }
}
