//! RIGHT and FULL JOIN with USING or NATURAL.
//!
//! ```text
//!   SELECT x + 1, * FROM a FULL JOIN b USING (x) WHERE x > 1
//!   SELECT u + 1, u AS x, a.y, b.z FROM a FULL JOIN b ON a.x = b.x WHERE u > 1
//!   where u is CASE WHEN a.x IS NULL THEN b.x ELSE a.x END, and b.x in a RIGHT JOIN
//! ```
//!
//! The planner takes the column of the left side for `x`, which is NULL where only the right has a row. What is not surely the
//! same otherwise stays as it is, and is refused: other joins beside it, `x` in a subquery or a named window, `*` of anything
//! but two tables.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Distinct, Expr, Ident, JoinConstraint, JoinOperator, ObjectName,
    ObjectNamePart, Query, Select, SelectItem, TableFactor, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};

use super::Walker;
use crate::names::fold;

/// One of the two tables.
struct Side {
    /// Its name in the statement.
    name: Ident,
    /// Its columns, as they are stored; `None` where only the planner knows them.
    columns: Option<Vec<String>>,
}

impl Side {
    fn column(&self, name: &str) -> Expr {
        let name = Ident::with_quote('"', name);
        Expr::CompoundIdentifier(vec![self.name.clone(), name])
    }

    fn has(&self, folded: &str) -> bool {
        self.columns.iter().flatten().any(|column| fold(column) == folded)
    }

    /// The columns that are not joined by.
    fn others(&self, joined: &HashMap<String, Expr>) -> Option<Vec<SelectItem>> {
        let others = self.columns.as_ref()?.iter().map(|name| fold(name));
        let others = others.filter(|name| !joined.contains_key(name));
        Some(others.map(|name| SelectItem::UnnamedExpr(self.column(&name))).collect())
    }
}

impl Walker<'_> {
    /// Writes such a join with ON, and its columns as what they are, where that is surely the same.
    pub(super) fn outer_using(&mut self, select: &mut Select) {
        let [from] = &select.from[..] else { return };
        let [join] = &from.joins[..] else { return };
        let (is_full, constraint) = match &join.join_operator {
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                (false, constraint)
            }
            JoinOperator::FullOuter(constraint) => (true, constraint),
            _ => return,
        };
        let (Some(left), Some(right)) = (self.side(&from.relation), self.side(&join.relation))
        else {
            return;
        };
        let names = joined_by(constraint, &left, &right);
        let has_windows = self.windows.last().is_some_and(|windows| !windows.is_empty());
        if names.is_empty() || has_windows || fold(&left.name.value) == fold(&right.name.value) {
            return;
        }
        let value = |name: &String| match is_full {
            true => first_of(left.column(name), right.column(name)),
            false => right.column(name),
        };
        let joined: HashMap<String, Expr> =
            names.iter().map(|name| (name.clone(), value(name))).collect();
        let Some(items) = items(select, &joined, &left, &right) else { return };
        let mut replacing =
            Replacing { joined: &joined, depth: 0, is_inner: false, walk: Walk::Look };
        replacing.visit_all(select);
        if replacing.is_inner {
            return;
        }
        for name in &names {
            let spelled = |side: &Side| {
                side.columns.iter().flatten().find(|column| fold(column) == *name).cloned()
            };
            let spelled = spelled(&left).or_else(|| spelled(&right));
            let spelled = spelled.unwrap_or_else(|| name.clone());
            self.names.aliases.entry(name.clone()).or_insert(spelled);
        }
        select.projection = items;
        replacing.walk = Walk::Replace;
        replacing.visit_all(select);
        let equal = |name: &String| Expr::BinaryOp {
            left: Box::new(left.column(name)),
            op: BinaryOperator::Eq,
            right: Box::new(right.column(name)),
        };
        let on = names.iter().map(equal).reduce(|all, next| Expr::BinaryOp {
            left: Box::new(all),
            op: BinaryOperator::And,
            right: Box::new(next),
        });
        let constraint = on.map_or(JoinConstraint::None, JoinConstraint::On);
        if let Some(join) = select.from.first_mut().and_then(|from| from.joins.first_mut()) {
            join.join_operator = match is_full {
                true => JoinOperator::FullOuter(constraint),
                false => JoinOperator::RightOuter(constraint),
            };
        }
    }

    /// A table or a subquery with a name.
    fn side(&self, factor: &TableFactor) -> Option<Side> {
        let (name, alias) = match factor {
            TableFactor::Table { name, alias, args: None, .. } => (Some(name), alias.as_ref()),
            TableFactor::Derived { lateral: false, alias, .. } => (None, alias.as_ref()),
            _ => return None,
        };
        let last = name.and_then(single_name);
        let known = match (last, alias) {
            // The list of columns after a name gives others.
            (_, Some(alias)) if !alias.columns.is_empty() => None,
            (Some(last), _)
                if !self.ctes.iter().any(|ctes| ctes.contains_key(&fold(&last.value))) =>
            {
                self.names.tables.get(&fold(&last.value))
            }
            _ => None,
        };
        let columns = known.map(|schema| schema.columns().iter().map(|c| c.name.clone()).collect());
        let name = alias.map(|alias| &alias.name).or(last)?;
        Some(Side { name: Ident::with_quote('"', fold(&name.value)), columns })
    }
}

/// A name without a schema.
fn single_name(name: &ObjectName) -> Option<&Ident> {
    match &name.0[..] {
        [ObjectNamePart::Identifier(ident)] => Some(ident),
        _ => None,
    }
}

/// The folded names of the columns that are joined by; none where they are not known.
fn joined_by(constraint: &JoinConstraint, left: &Side, right: &Side) -> Vec<String> {
    match constraint {
        JoinConstraint::Using(names) => {
            let names = names.iter().map(|name| single_name(name).map(|name| fold(&name.value)));
            names.collect::<Option<_>>().unwrap_or_default()
        }
        JoinConstraint::Natural if right.columns.is_some() => {
            let columns = left.columns.iter().flatten().map(|name| fold(name));
            columns.filter(|name| right.has(name)).collect()
        }
        _ => Vec::new(),
    }
}

fn first_of(left: Expr, right: Expr) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen {
            condition: Expr::IsNull(Box::new(left.clone())),
            result: right,
        }],
        else_result: Some(Box::new(left)),
    }
}

/// The list of SELECT with `*` written out, and names for the columns that are joined by; `None` where `*` is not known.
fn items(
    select: &Select,
    joined: &HashMap<String, Expr>,
    left: &Side,
    right: &Side,
) -> Option<Vec<SelectItem>> {
    let named = |name: &str| SelectItem::ExprWithAlias {
        expr: joined[name].clone(),
        alias: Ident::with_quote('"', name),
    };
    let mut items = Vec::with_capacity(select.projection.len());
    for item in &select.projection {
        match item {
            SelectItem::Wildcard(options) => {
                let plain = WildcardAdditionalOptions {
                    wildcard_token: options.wildcard_token.clone(),
                    ..WildcardAdditionalOptions::default()
                };
                if *options != plain {
                    return None;
                }
                for name in left.columns.as_ref()?.iter().map(|name| fold(name)) {
                    items.push(match joined.contains_key(&name) {
                        true => named(&name),
                        false => SelectItem::UnnamedExpr(left.column(&name)),
                    });
                }
                items.extend(right.others(joined)?);
            }
            SelectItem::UnnamedExpr(Expr::Identifier(name))
                if joined.contains_key(&fold(&name.value)) =>
            {
                items.push(named(&fold(&name.value)));
            }
            other => items.push(other.clone()),
        }
    }
    Some(items)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Walk {
    Look,
    Replace,
}

/// Puts values in the place of the names of columns that are joined by.
struct Replacing<'a> {
    joined: &'a HashMap<String, Expr>,
    /// Queries around the place, each a level.
    depth: usize,
    /// Whether a subquery names one, where it may be another.
    is_inner: bool,
    walk: Walk,
}

impl Replacing<'_> {
    /// All of a SELECT but its FROM.
    fn visit_all(&mut self, select: &mut Select) {
        for item in &mut select.projection {
            let _ = item.visit(self);
        }
        if let Some(Distinct::On(exprs)) = &mut select.distinct {
            let _ = exprs.visit(self);
        }
        let conditions = [&mut select.selection, &mut select.having, &mut select.qualify];
        for condition in conditions.into_iter().flatten() {
            let _ = condition.visit(self);
        }
        let _ = select.group_by.visit(self);
    }
}

impl VisitorMut for Replacing<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && let Some(value) = self.joined.get(&fold(&name.value))
        {
            match (self.depth, self.walk) {
                (0, Walk::Look) => {}
                (0, Walk::Replace) => *expr = value.clone(),
                _ => self.is_inner = true,
            }
        }
        ControlFlow::Continue(())
    }
}
