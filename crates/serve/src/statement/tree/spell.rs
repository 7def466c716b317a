//! Names of columns that a query does not name: as they are written, `count(*)` or `a + 1`.
//!
//! The planner has names of its own (`count(Int64(1))`), and wants different ones where two are the same.

use std::collections::HashSet;
use std::fmt::{self, Write};

use datafusion::sql::sqlparser::ast::{Expr, Ident, OrderByExpr, Select, SelectItem};

use super::Walker;
use crate::names::fold;

/// Characters of a name of a column.
const CHARS_MAX: usize = 200;
/// Stands before the number of a column whose name is taken: no name can have it.
const AGAIN: char = '\u{0}';

impl Walker<'_> {
    /// Gives names to the columns of a SELECT that have none.
    pub(super) fn name_columns(&mut self, projection: &mut [SelectItem]) {
        let mut taken = HashSet::new();
        // Columns that are named, those with a table before them apart: `t.a, a` is one column twice, `t.a, u.a` are two.
        let (mut plain, mut qualified) = (HashSet::new(), HashSet::new());
        for item in projection {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            let written = short_text(bare(expr));
            let folded = fold(&written);
            let shown = match bare(expr) {
                Expr::Identifier(name) => Some(&name.value),
                Expr::CompoundIdentifier(names) => names.last().map(|name| &name.value),
                _ => None,
            };
            let is_again = !taken.insert(folded.clone())
                || shown.is_some_and(|name| {
                    let name = fold(name);
                    match matches!(bare(expr), Expr::Identifier(_)) {
                        true => !plain.insert(name.clone()) || qualified.contains(&name),
                        false => {
                            qualified.insert(name.clone());
                            plain.contains(&name)
                        }
                    }
                });
            let alias = match (is_again, shown) {
                (false, Some(_)) => continue,
                (false, None) => written,
                (true, shown) => {
                    let alias = format!("{folded}{AGAIN}{}", taken.len());
                    taken.insert(alias.clone());
                    let shown = shown.cloned().unwrap_or(written);
                    self.names.aliases.insert(alias.clone(), shown);
                    alias
                }
            };
            let alias = Ident::with_quote('"', alias);
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

/// Has ORDER BY name the columns of a SELECT DISTINCT that are written alike: the planner takes no others there.
pub(super) fn order_by_names(order: &mut [OrderByExpr], select: &Select) {
    for OrderByExpr { expr, .. } in order {
        let written = short_text(bare(expr));
        let is_it = |item: &&SelectItem| match item {
            SelectItem::ExprWithAlias { alias, .. } => alias.value == written,
            _ => false,
        };
        if let Some(SelectItem::ExprWithAlias { alias, .. }) = select.projection.iter().find(is_it)
        {
            *expr = Expr::Identifier(alias.clone());
        }
    }
}

/// An expression without the parentheses around it.
fn bare(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// An expression as it is written, or its start.
pub(super) fn short_text(expr: &Expr) -> String {
    struct Start(String, usize);
    impl Write for Start {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for character in text.chars() {
                if self.1 == CHARS_MAX {
                    return Err(fmt::Error);
                }
                self.0.push(character);
                self.1 += 1;
            }
            Ok(())
        }
    }
    let mut start = Start(String::new(), 0);
    // It fails when there is enough.
    let _ = write!(start, "{expr}");
    start.0
}
