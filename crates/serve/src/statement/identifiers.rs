//! Names of columns without regard to case.
//!
//! DataFusion turns unquoted names to lower case and compares exactly. A store keeps names as they
//! were written. Where these differ, names in a statement that mean a stored column are replaced by
//! the stored spelling, quoted.
//!
//! Aliases win: a name that the statement itself gives is left alone.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use coload_store::Snapshot;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, Statement as SqlStatement,
    VisitMut, VisitorMut, visit_relations,
};

/// Replaces the names in a statement, if any column of its tables needs it.
pub(crate) fn resolve(statement: &mut Statement, text: &str, snapshot: &Snapshot) {
    match statement {
        Statement::Statement(sql) => resolve_sql(sql, text, snapshot),
        Statement::Explain(explain) => resolve(&mut explain.statement, text, snapshot),
        _ => {}
    }
}

fn resolve_sql(sql: &mut SqlStatement, text: &str, snapshot: &Snapshot) {
    // Quoted names keep their case in DataFusion.
    let quoted = text.contains('"');
    let mut stored: HashMap<String, String> = HashMap::new();
    let _ = visit_relations(sql, |relation| {
        let table = relation.0.last().and_then(ObjectNamePart::as_ident);
        if let Some(table) = table.and_then(|t| snapshot.table(&t.value)) {
            for column in table.schema.columns() {
                let lower = column.name.to_lowercase();
                if quoted || lower != column.name {
                    stored.insert(lower, column.name.clone());
                }
            }
        }
        ControlFlow::<()>::Continue(())
    });
    if stored.is_empty() {
        return;
    }
    let mut names = Names { stored, aliases: HashSet::new() };
    let mut aliases = Aliases(&mut names.aliases);
    let _ = sql.visit(&mut aliases);
    if let SqlStatement::Insert(insert) = sql {
        insert.columns.iter_mut().for_each(|name| names.replace_object(name));
    }
    let _ = sql.visit(&mut names);
}

/// Collects the names that a statement gives to its own columns.
struct Aliases<'a>(&'a mut HashSet<String>);

impl VisitorMut for Aliases<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.0.insert(alias.value.to_lowercase());
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for cte in query.with.iter().flat_map(|w| &w.cte_tables) {
            let columns = cte.alias.columns.iter().map(|c| c.name.value.to_lowercase());
            self.0.extend(columns);
        }
        ControlFlow::Continue(())
    }
}

struct Names {
    /// Stored spelling by lower case.
    stored: HashMap<String, String>,
    aliases: HashSet<String>,
}

impl Names {
    fn replace(&self, ident: &mut Ident) {
        let lower = ident.value.to_lowercase();
        if self.aliases.contains(&lower) {
            return;
        }
        if let Some(stored) = self.stored.get(&lower) {
            ident.value.clone_from(stored);
            ident.quote_style = Some('"');
        }
    }

    fn replace_object(&self, name: &mut ObjectName) {
        if let [ObjectNamePart::Identifier(ident)] = name.0.as_mut_slice() {
            self.replace(ident);
        }
    }
}

impl VisitorMut for Names {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => self.replace(ident),
            Expr::CompoundIdentifier(parts) => {
                if let Some(last) = parts.last_mut() {
                    self.replace(last);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
