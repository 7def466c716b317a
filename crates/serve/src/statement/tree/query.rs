//! Queries.

use std::collections::HashMap;
use std::ops::ControlFlow;

use coload_types::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    Cte, Distinct, ExceptSelectItem, ExcludeSelectItem, Expr, Fetch, GroupByExpr, Ident, Insert,
    LimitClause, Offset, OrderBy, OrderByExpr, OrderByKind, Query, ReplaceSelectElement, Select,
    SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier,
    Statement, TableObject, Values, WildcardAdditionalOptions, With, visit_expressions,
};

use super::super::text::too_deep;
use super::spell::{order_by_names, short_text};
use super::{JOINED_MAX, WILDCARDS_MAX, Walk, Walker, refuse};
use crate::names::fold;

impl Walker<'_> {
    pub(super) fn query(&mut self, query: &mut Query) -> Result<()> {
        let inner = std::mem::take(&mut self.inner);
        self.ctes.push(HashMap::new());
        let done = self.deeper(|walker| walker.query_here(query));
        self.ctes.pop();
        self.inner = inner;
        done
    }

    fn query_here(&mut self, query: &mut Query) -> Result<()> {
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        if !locks.is_empty() {
            return refuse("FOR UPDATE or SHARE", "each statement sees one version of the store");
        }
        if for_clause.is_some() {
            return refuse("FOR XML, JSON or BROWSE", "answers are rows");
        }
        if settings.is_some() || format_clause.is_some() {
            return refuse("SETTINGS or FORMAT in a query", "leave it out");
        }
        if !pipe_operators.is_empty() {
            return refuse("|>", "write SELECT .. FROM (SELECT ..)");
        }
        if let Some(with) = with {
            self.with(with)?;
        }
        if let Some(fetch) = fetch.take() {
            fetch_as_limit(fetch, limit_clause)?;
        }
        // Windows of the SELECT are known in ORDER BY too.
        let mut windows = match &mut **body {
            SetExpr::Select(select) => std::mem::take(&mut select.named_window),
            _ => Vec::new(),
        };
        self.enter_windows(&mut windows)?;
        let is_select = matches!(**body, SetExpr::Select(_));
        let done = self.body(body, order_by, limit_clause, is_select);
        self.leave_windows();
        done
    }

    fn body(
        &mut self,
        body: &mut SetExpr,
        order_by: &mut Option<OrderBy>,
        limit: &mut Option<LimitClause>,
        is_select: bool,
    ) -> Result<()> {
        self.set_expr(body)?;
        if self.walk == Walk::Look
            && let Some(OrderBy { kind: OrderByKind::Expressions(exprs), .. }) = order_by
            && let SetExpr::Select(select) = &*body
            && select.distinct.is_some()
        {
            order_by_names(exprs, select);
        }
        if let Some(order_by) = order_by {
            self.order_by(order_by, is_select)?;
        }
        match limit {
            None => Ok(()),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
                if !limit_by.is_empty() {
                    return refuse("LIMIT BY", "number the rows with row_number() and filter them");
                }
                if let Some(limit) = limit {
                    self.expr(limit)?;
                }
                match offset {
                    Some(Offset { value, rows: _ }) => self.expr(value),
                    None => Ok(()),
                }
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
                self.expr(offset)?;
                self.expr(limit)
            }
        }
    }

    fn order_by(&mut self, order_by: &mut OrderBy, is_select: bool) -> Result<()> {
        let OrderBy { kind, interpolate } = order_by;
        if interpolate.is_some() {
            return refuse("INTERPOLATE", "leave it out");
        }
        match kind {
            OrderByKind::Expressions(exprs) => self.order_exprs(exprs),
            // The planner would not sort at all.
            OrderByKind::All(_) if !is_select => {
                refuse("ORDER BY ALL of a UNION", "name the columns or their numbers")
            }
            OrderByKind::All(_) => Ok(()),
        }
    }

    pub(super) fn order_exprs(&mut self, exprs: &mut [OrderByExpr]) -> Result<()> {
        for OrderByExpr { expr, options: _, with_fill } in exprs {
            if with_fill.is_some() {
                return refuse("WITH FILL", "join with generate_series");
            }
            self.expr(expr)?;
        }
        Ok(())
    }

    fn with(&mut self, with: &mut With) -> Result<()> {
        let With { with_token: _, recursive, cte_tables } = with;
        for Cte { alias, query, from, materialized: _, closing_paren_token: _ } in cte_tables {
            if from.is_some() {
                return refuse("FROM after a common table expression", "leave it out");
            }
            if *recursive {
                check_recursive(query)?;
            }
            let before = self.relations;
            if *recursive && let Some(ctes) = self.ctes.last_mut() {
                // It is known within itself.
                ctes.insert(fold(&alias.name.value), 1);
            }
            self.with_names_unseen(false, |walker| walker.query(query))?;
            let tables = (self.relations - before).max(1);
            if let Some(ctes) = self.ctes.last_mut() {
                ctes.insert(fold(&alias.name.value), tables);
            }
            self.table_alias(alias)?;
        }
        Ok(())
    }

    fn set_expr(&mut self, expr: &mut SetExpr) -> Result<()> {
        let (mut levels, mut current) = (self.depth, &*expr);
        while let SetExpr::SetOperation { left, .. } = current {
            levels += 1;
            if levels > self.limits.depth {
                return Err(too_deep(self.limits.depth));
            }
            current = left;
        }
        self.deeper(|walker| match expr {
            SetExpr::Select(select) => walker.select(select),
            SetExpr::Query(query) => walker.query(query),
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                match (op, set_quantifier) {
                    (
                        SetOperator::Union | SetOperator::Except | SetOperator::Intersect,
                        SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None,
                    )
                    | (
                        SetOperator::Union,
                        SetQuantifier::ByName
                        | SetQuantifier::AllByName
                        | SetQuantifier::DistinctByName,
                    ) => {}
                    (op, quantifier) => {
                        return refuse(
                            &format!("{op} {quantifier}"),
                            "there is UNION, EXCEPT and INTERSECT",
                        );
                    }
                }
                walker.set_expr(left)?;
                walker.set_expr(right)
            }
            SetExpr::Values(Values { explicit_row: _, value_keyword, rows }) => {
                if *value_keyword {
                    return refuse("VALUE", "write VALUES");
                }
                walker.values += 1;
                rows.iter_mut().try_for_each(|row| walker.exprs(&mut row.content))
            }
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                refuse("a change within a query", "send it as a statement of its own")
            }
            SetExpr::Table(_) => refuse("TABLE", "write SELECT * FROM"),
        })
    }

    fn select(&mut self, select: &mut Select) -> Result<()> {
        // A SELECT that is the body of a query has handed its windows to the query.
        if select.named_window.is_empty() {
            return self.select_here(select);
        }
        self.enter_windows(&mut select.named_window)?;
        let done = self.select_here(select);
        self.leave_windows();
        done
    }

    fn select_here(&mut self, select: &mut Select) -> Result<()> {
        if self.walk == Walk::Fold {
            self.outer_using(select);
        }
        let Select {
            select_token: _,
            optimizer_hints: _,
            distinct,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window: _,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        let refused = [
            (select_modifiers.is_some(), "a modifier of SELECT"),
            (top.is_some(), "TOP"),
            (exclude.is_some(), "EXCLUDE after the columns"),
            (into.is_some(), "SELECT INTO"),
            (!lateral_views.is_empty(), "LATERAL VIEW"),
            (prewhere.is_some(), "PREWHERE"),
            (!connect_by.is_empty(), "CONNECT BY"),
            (!cluster_by.is_empty(), "CLUSTER BY"),
            (!distribute_by.is_empty(), "DISTRIBUTE BY"),
            (!sort_by.is_empty(), "SORT BY"),
            (value_table_mode.is_some(), "SELECT AS"),
        ];
        if let Some((_, what)) = refused.iter().find(|(is_there, _)| *is_there) {
            let instead = match *what {
                "TOP" => "write LIMIT",
                "SELECT INTO" => "write CREATE TABLE .. AS SELECT",
                "PREWHERE" => "write WHERE",
                "CONNECT BY" => "write WITH RECURSIVE",
                "SORT BY" | "CLUSTER BY" => "write ORDER BY",
                _ => "leave it out",
            };
            return refuse(what, instead);
        }
        match flavor {
            SelectFlavor::Standard | SelectFlavor::FromFirst => {}
            SelectFlavor::FromFirstNoSelect => {
                if projection.is_empty() {
                    projection.push(SelectItem::Wildcard(WildcardAdditionalOptions::default()));
                }
                *flavor = SelectFlavor::Standard;
            }
        }
        if projection.is_empty() {
            return refuse("SELECT without columns", "name some, or write *");
        }
        let joined = from.iter().map(|table| 1 + table.joins.len()).sum::<usize>();
        if joined > JOINED_MAX {
            return Err(Error::Limit(format!("{joined} tables in a FROM, over {JOINED_MAX}")));
        }
        from.iter_mut().try_for_each(|table| self.table_with_joins(table))?;
        match distinct {
            Some(Distinct::On(exprs)) => self.exprs(exprs)?,
            Some(Distinct::All | Distinct::Distinct) | None => {}
        }
        if self.walk == Walk::Look && !self.is_unseen {
            self.name_columns(projection);
        }
        projection.iter_mut().try_for_each(|item| self.item(item))?;
        match group_by {
            GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)
                if !modifiers.is_empty() =>
            {
                return refuse(
                    "GROUP BY .. WITH",
                    "write ROLLUP (..), CUBE (..) or GROUPING SETS (..)",
                );
            }
            GroupByExpr::All(_) => {}
            GroupByExpr::Expressions(exprs, _) => self.exprs(exprs)?,
        }
        let conditions = [selection, having, qualify];
        conditions.into_iter().flatten().try_for_each(|expr| self.expr(expr))
    }

    fn item(&mut self, item: &mut SelectItem) -> Result<()> {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                if self.walk == Walk::Look && asks_subquery(expr) {
                    // The planner calls all of them EXISTS, and wants different names.
                    let alias = Ident::with_quote('"', short_text(expr));
                    *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                    return self.item(item);
                }
                self.expr(expr)
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                self.alias(alias);
                self.expr(expr)
            }
            SelectItem::ExprWithAliases { .. } => {
                refuse("several names of one column", "give each column one name")
            }
            SelectItem::QualifiedWildcard(kind, options) => {
                match kind {
                    SelectItemQualifiedWildcardKind::ObjectName(name) => {
                        self.object_columns(name)?
                    }
                    SelectItemQualifiedWildcardKind::Expr(_) => {
                        return refuse("* of an expression", "there are no structs");
                    }
                }
                self.wildcard(options)
            }
            SelectItem::Wildcard(options) => self.wildcard(options),
        }
    }

    fn wildcard(&mut self, options: &mut WildcardAdditionalOptions) -> Result<()> {
        self.wildcards += 1;
        if self.wildcards > WILDCARDS_MAX {
            return Err(Error::Limit(format!("more than {WILDCARDS_MAX} times *")));
        }
        let WildcardAdditionalOptions {
            wildcard_token: _,
            opt_ilike,
            opt_exclude,
            opt_except,
            opt_replace,
            opt_rename,
            opt_alias,
        } = options;
        if opt_rename.is_some() || opt_alias.is_some() {
            return refuse("* with new names", "name the columns");
        }
        if opt_ilike.is_some() {
            return refuse("* ILIKE", "name the columns");
        }
        match opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => self.object_columns(name)?,
            Some(ExcludeSelectItem::Multiple(names)) => {
                names.iter_mut().try_for_each(|name| self.object_columns(name))?;
            }
            None => {}
        }
        if let Some(ExceptSelectItem { first_element, additional_elements }) = opt_except {
            self.column(first_element);
            additional_elements.iter_mut().for_each(|name| self.column(name));
        }
        let replaced = opt_replace.iter_mut().flat_map(|replace| &mut replace.items);
        for item in replaced {
            let ReplaceSelectElement { expr, column_name, as_keyword: _ } = &mut **item;
            self.column(column_name);
            self.expr(expr)?;
        }
        Ok(())
    }

    pub(super) fn insert(&mut self, statement: &mut Statement) -> Result<()> {
        let Statement::Insert(insert) = statement else {
            return Err(Error::Invalid("not an INSERT".into()));
        };
        let Insert {
            insert_token: _,
            optimizer_hints: _,
            or,
            ignore,
            into: _,
            table,
            table_alias,
            columns,
            overwrite,
            source,
            assignments,
            partitioned,
            after_columns,
            has_table_keyword: _,
            on,
            returning,
            output,
            replace_into,
            priority,
            insert_alias,
            settings,
            format_clause,
            multi_table_insert_type,
            multi_table_into_clauses,
            multi_table_when_clauses,
            multi_table_else_clause,
        } = insert;
        if on.is_some() || or.is_some() || *ignore || *replace_into {
            return refuse(
                "INSERT IGNORE and REPLACE INTO",
                "write INSERT OR IGNORE or INSERT OR REPLACE",
            );
        }
        if returning.is_some() || output.is_some() {
            return refuse("RETURNING", "SELECT from the table afterwards");
        }
        if *overwrite {
            return refuse("INSERT OVERWRITE", "TRUNCATE the table first");
        }
        let others = [
            (table_alias.is_some() || insert_alias.is_some(), "an alias of the table of an INSERT"),
            (!assignments.is_empty(), "INSERT .. SET"),
            (partitioned.is_some() || !after_columns.is_empty(), "PARTITION in an INSERT"),
            (priority.is_some(), "a priority of an INSERT"),
            (settings.is_some() || format_clause.is_some(), "SETTINGS or FORMAT in an INSERT"),
            (
                multi_table_insert_type.is_some()
                    || !multi_table_into_clauses.is_empty()
                    || !multi_table_when_clauses.is_empty()
                    || multi_table_else_clause.is_some(),
                "INSERT into several tables",
            ),
        ];
        if let Some((_, what)) = others.iter().find(|(is_there, _)| *is_there) {
            return refuse(what, "write INSERT INTO table (columns) VALUES or SELECT");
        }
        match table {
            TableObject::TableName(name) => self.relation(name)?,
            _ => return refuse("INSERT into anything but a table", "name a table"),
        }
        columns.iter_mut().try_for_each(|name| self.object_columns(name))?;
        match source {
            Some(query) => self.rows_of_insert(query),
            None => refuse("INSERT without rows", "write VALUES or SELECT"),
        }
    }
}

impl Walker<'_> {
    /// The planner casts every VALUES within an INSERT to the columns of the table, also one that a SELECT reads.
    fn rows_of_insert(&mut self, query: &mut Query) -> Result<()> {
        let its_own = usize::from(matches!(*query.body, SetExpr::Values(_)));
        self.values = 0;
        self.query(query)?;
        if self.values > its_own {
            return refuse(
                "VALUES within the SELECT of an INSERT",
                "write SELECT .. UNION ALL SELECT ..",
            );
        }
        Ok(())
    }
}

/// Whether EXISTS, IN, ANY or ALL over a subquery is in an expression.
fn asks_subquery(expr: &Expr) -> bool {
    let found = visit_expressions(expr, |part| match part {
        Expr::Exists { .. } | Expr::InSubquery { .. } | Expr::AnyOp { .. } | Expr::AllOp { .. } => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Refuses what the planner drops of a recursive common table expression.
fn check_recursive(query: &Query) -> Result<()> {
    let is_union = matches!(&*query.body, SetExpr::SetOperation { op: SetOperator::Union, .. });
    let has_more = query.with.is_some()
        || query.order_by.is_some()
        || query.limit_clause.is_some()
        || query.fetch.is_some();
    if is_union && has_more {
        return refuse(
            "WITH, ORDER BY or LIMIT beside the UNION of WITH RECURSIVE",
            "write it in the query that reads the result",
        );
    }
    Ok(())
}

/// FETCH FIRST n ROWS ONLY is LIMIT n.
fn fetch_as_limit(fetch: Fetch, clause: &mut Option<LimitClause>) -> Result<()> {
    let Fetch { with_ties, percent, quantity } = fetch;
    if with_ties || percent {
        return refuse(
            "FETCH .. PERCENT or WITH TIES",
            "rank the rows with rank() and filter them",
        );
    }
    let quantity = match quantity {
        Some(quantity) => quantity,
        None => Expr::value(datafusion::sql::sqlparser::ast::Value::Number("1".into(), false)),
    };
    match clause {
        None => {
            *clause = Some(LimitClause::LimitOffset {
                limit: Some(quantity),
                offset: None,
                limit_by: Vec::new(),
            });
            Ok(())
        }
        Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => {
            *limit = Some(quantity);
            Ok(())
        }
        Some(_) => refuse("LIMIT and FETCH together", "write one of them"),
    }
}
