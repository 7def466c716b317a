//! Views in the place of tables: their queries stand there from the first walk on.
//!
//! The query of a view does not see common table expressions around it: its tables get the name of their schema, which no such
//! expression has.

use coload_types::Result;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart, TableAlias, TableFactor};

use super::{Walk, Walker};
use crate::catalog::SCHEMA;
use crate::names::fold;
use crate::statement::view;

impl Walker<'_> {
    /// Puts the query of a view in its place and looks at it; `None` when the factor is no view.
    pub(super) fn view(&mut self, factor: &mut TableFactor) -> Option<Result<()>> {
        let TableFactor::Table { name, alias, args: None, .. } = &*factor else { return None };
        if self.walk != Walk::Look || self.is_cte(name) {
            return None;
        }
        let found = view::find(name, self.views?)?;
        let expanded = view::subquery(found, alias.clone(), self.limits);
        Some(expanded.and_then(|subquery| {
            *factor = subquery;
            self.in_view(|walker| walker.factor(factor))
        }))
    }

    fn in_view<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let hidden = std::mem::replace(&mut self.hidden_ctes, self.ctes.len());
        let in_view = std::mem::replace(&mut self.in_view, true);
        let done = work(self);
        (self.hidden_ctes, self.in_view) = (hidden, in_view);
        done
    }

    /// Whether a name is that of a common table expression.
    fn is_cte(&self, name: &ObjectName) -> bool {
        let [ObjectNamePart::Identifier(ident)] = &name.0[..] else { return false };
        self.cte(&fold(&ident.value)).is_some()
    }

    /// Names the schema of a table in the query of a view.
    pub(super) fn qualify(&self, name: &mut ObjectName, alias: &mut Option<TableAlias>) {
        let is_bare = matches!(name.0[..], [ObjectNamePart::Identifier(_)]);
        if !self.in_view || self.walk != Walk::Look || !is_bare || self.is_cte(name) {
            return;
        }
        let Some(ObjectNamePart::Identifier(table)) = name.0.first().cloned() else { return };
        alias.get_or_insert_with(|| TableAlias {
            explicit: true,
            name: table.clone(),
            columns: Vec::new(),
            at: None,
        });
        *name = ObjectName::from(vec![Ident::with_quote('"', SCHEMA), table]);
    }
}
