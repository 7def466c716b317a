//! The tree of a statement: what may be in it, and its names.
//!
//! ```text
//!   parsed tree --look--> names of columns, tables, aliases --fold--> tree for the planner
//! ```
//!
//! Every variant and every field of the tree is named here and below, without `..`, so that a new version of the parser
//! does not compile until somebody has said what a new field means. What the planner would not look at is refused, so
//! that nothing is dropped silently. On the way some forms become others that the planner has: named windows their
//! definitions, FETCH a LIMIT, numbers with an exponent floats, long chains of AND and OR balanced trees.
//!
//! Cost: two walks over the tree. Recursion is bounded by the depth of the limits.

mod chain;
mod expr;
mod external;
mod function;
mod like;
mod postgres;
mod query;
mod spell;
mod spoken;
mod tables;
mod types;
mod using;
mod views;
mod window;

use std::collections::HashMap;

use coload_ddl::Schema;
use coload_store::Snapshot;
use coload_types::{DataType, Error, Result};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, Statement, WindowSpec,
};

use super::limits::StatementLimits;
use super::text::too_deep;
use crate::external::Externals;
use crate::external::reference::{self, ExternalReference};
use crate::names::{find_table, fold};
use crate::rights::Rights;

pub(crate) use postgres::PG_CATALOG;
pub(crate) use spoken::{spoken_calls, spoken_names};

/// Definitions of windows that may be put in the place of their names.
const WINDOW_COPIES_MAX: usize = 1_000;

/// Levels of all expressions, each counted from where its expression begins: the planner asks for the type of each term
/// again at each level above it, some microseconds each time.
const WORK_MAX: usize = 1_500_000;

/// Tables of a statement, each common table expression counted with its own tables wherever it is named: the planner
/// copies it there, so that a few lines could ask for 2^30 of them.
const RELATIONS_MAX: usize = 1_000;

/// Tables of one FROM: each join has the columns of all before it.
const JOINED_MAX: usize = 100;

/// `*` of a statement.
const WILDCARDS_MAX: usize = 100;

/// Columns of a CUBE, which makes 2^n groups.
const CUBE_MAX: usize = 10;

/// Whether names are collected or folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walk {
    Look,
    Fold,
}

/// The names of a statement.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Tables that it names and that the caller may read, with their stored columns by folded name.
    tables: HashMap<String, Schema>,
    /// What a folded name of a column becomes: itself, or another spelling.
    columns: HashMap<String, String>,
    /// Aliases by folded name, as they are written where they come first.
    aliases: HashMap<String, String>,
    /// Names of relations as they are written, without schema.
    relations: Vec<String>,
    /// Inputs in the place of tables, by the names that stand for them.
    externals: Vec<(String, ExternalReference)>,
}

impl Names {
    /// Names of one list of columns, which keep their stored spelling.
    pub fn of_columns(schema: &Schema) -> Self {
        let columns = schema.columns().iter().map(|c| (fold(&c.name), c.name.clone()));
        Names { columns: columns.collect(), ..Names::default() }
    }

    /// Looks for the relations that the statement names among tables that the caller may read, and looks at inputs.
    fn find_tables(&mut self, scope: &mut Scope<'_>) -> Result<()> {
        let Scope { snapshot, rights, externals } = scope;
        for (name, reference) in &self.externals.clone() {
            let table = externals.open(name, reference)?;
            self.add_table(&fold(name), table.columns());
        }
        for name in std::mem::take(&mut self.relations) {
            let Some(index) = find_table(snapshot, &name) else { continue };
            let table = &snapshot.tables()[index];
            if rights.may_read(&table.name) {
                self.add_table(&fold(&name), &table.schema);
            }
        }
        Ok(())
    }

    fn add_table(&mut self, name: &str, schema: &Schema) {
        let folded = schema.columns().iter().map(|c| fold(&c.name));
        self.columns.extend(folded.map(|name| (name.clone(), name)));
        self.tables.insert(name.to_owned(), schema.clone());
    }

    /// The stored spelling of a folded column, of any table that the statement names.
    pub fn stored(&self, folded: &str) -> Option<&str> {
        self.tables
            .values()
            .flat_map(Schema::columns)
            .map(|c| c.name.as_str())
            .find(|name| fold(name) == folded)
    }

    /// The declared type of a folded column, where one table is named.
    pub fn declared(&self, folded: &str) -> Option<DataType> {
        let mut tables = self.tables.values();
        let (Some(table), None) = (tables.next(), tables.next()) else { return None };
        table.columns().iter().find(|c| fold(&c.name) == folded).map(|c| c.data_type)
    }

    /// The spelling of a folded alias.
    pub fn alias(&self, folded: &str) -> Option<&str> {
        self.aliases.get(folded).map(String::as_str)
    }

    fn replacement(&self, ident: &Ident) -> Option<String> {
        let folded = fold(&ident.value);
        match self.columns.get(&folded) {
            Some(name) => Some(name.clone()),
            None if self.aliases.contains_key(&folded) || self.tables.contains_key(&folded) => {
                Some(folded)
            }
            // A name that the planner gave, such as "Int64(1)" of a subquery, is that in quotes.
            None => ident.quote_style.is_none().then_some(folded),
        }
    }
}

/// What the names of a statement may be those of.
pub(crate) struct Scope<'a> {
    pub snapshot: &'a Snapshot,
    pub rights: &'a Rights,
    pub externals: &'a mut Externals,
}

/// A walk over a tree.
struct Walker<'a> {
    limits: &'a StatementLimits,
    names: Names,
    walk: Walk,
    depth: usize,
    /// Windows of the SELECTs around, by folded name.
    windows: Vec<HashMap<String, WindowSpec>>,
    window_copies: usize,
    /// Levels within the expression that is looked at.
    inner: usize,
    work: usize,
    /// VALUES seen in an INSERT.
    values: usize,
    /// Tables of common table expressions of the queries around, by folded name.
    ctes: Vec<HashMap<String, usize>>,
    relations: usize,
    wildcards: usize,
    /// Whether nobody sees the names of the query's columns, as it stands in an expression.
    is_unseen: bool,
    /// Terms of arguments that were written twice.
    copied: usize,
    /// The views that there are, and who asks.
    views: Option<(&'a Snapshot, &'a Rights)>,
    /// Whether the query of a view is looked at, and common table expressions that it does not see: those around it.
    in_view: bool,
    hidden_ctes: usize,
}

/// Checks a query and folds its names.
///
/// # Errors
/// `Invalid` for what is not allowed, `Limit` when it is too deep.
pub(crate) fn check_query(
    query: &mut Query,
    limits: &StatementLimits,
    scope: Scope<'_>,
) -> Result<Names> {
    let mut walker = Walker::new(limits, Names::default()).with_views(&scope);
    walker.query(query)?;
    walker.fold_from_here(scope)?;
    walker.query(query)?;
    Ok(walker.names)
}

/// Checks an expression over some columns, without subqueries, and puts in their stored spelling.
///
/// # Errors
/// As [`check_query`].
pub(crate) fn check_expression(
    expr: &mut Expr,
    limits: &StatementLimits,
    schema: &Schema,
) -> Result<()> {
    let mut walker = Walker::new(limits, Names::of_columns(schema));
    walker.expr(expr)?;
    walker.walk = Walk::Fold;
    walker.work = 0;
    walker.expr(expr)
}

/// Checks an INSERT and folds its names.
///
/// # Errors
/// As [`check_query`].
pub(crate) fn check_insert(
    statement: &mut Statement,
    limits: &StatementLimits,
    scope: Scope<'_>,
) -> Result<Names> {
    let mut walker = Walker::new(limits, Names::default()).with_views(&scope);
    walker.insert(statement)?;
    walker.fold_from_here(scope)?;
    walker.insert(statement)?;
    Ok(walker.names)
}

/// Folds the name of a table by itself, and tells its columns.
///
/// # Errors
/// `Invalid` when it is no name.
pub(crate) fn name_of_table(name: &mut ObjectName, scope: Scope<'_>) -> Result<Names> {
    let limits = StatementLimits::default();
    let mut walker = Walker::new(&limits, Names::default());
    if let Some(reference) = reference::of_name(name) {
        walker.external(name, reference);
    }
    walker.relation(name)?;
    walker.fold_from_here(scope)?;
    walker.relation(name)?;
    Ok(walker.names)
}

/// Checks how deep an expression of a definition is, such as a rule of a table.
///
/// # Errors
/// As [`check_query`].
pub(crate) fn check_depth(expr: &mut Expr, limits: &StatementLimits) -> Result<()> {
    Walker::new(limits, Names::default()).expr(expr)
}

fn refuse<T>(what: &str, instead: &str) -> Result<T> {
    Err(super::unsupported(what, instead))
}

impl<'a> Walker<'a> {
    fn new(limits: &'a StatementLimits, names: Names) -> Self {
        Walker {
            limits,
            names,
            walk: Walk::Look,
            depth: 0,
            windows: Vec::new(),
            window_copies: 0,
            inner: 0,
            work: 0,
            values: 0,
            ctes: Vec::new(),
            relations: 0,
            wildcards: 0,
            is_unseen: false,
            copied: 0,
            views: None,
            in_view: false,
            hidden_ctes: 0,
        }
    }

    /// The same with the views of a store.
    fn with_views(self, scope: &Scope<'a>) -> Self {
        Walker { views: Some((scope.snapshot, scope.rights)), ..self }
    }

    fn fold_from_here(&mut self, mut scope: Scope<'_>) -> Result<()> {
        self.names.find_tables(&mut scope)?;
        self.walk = Walk::Fold;
        (self.window_copies, self.work, self.relations, self.wildcards) = (0, 0, 0, 0);
        Ok(())
    }

    /// Does something one level deeper.
    fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= self.limits.depth {
            return Err(too_deep(self.limits.depth));
        }
        self.depth += 1;
        let done = work(self);
        self.depth -= 1;
        done
    }

    /// Does something where nobody sees the names of columns, or where they are seen.
    fn with_names_unseen<T>(&mut self, is_unseen: bool, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.is_unseen, is_unseen);
        let done = work(self);
        self.is_unseen = outer;
        done
    }

    /// Counts a use of a relation with all that it stands for.
    fn count_relation(&mut self, name: &ObjectName) -> Result<()> {
        let folded = match &name.0[..] {
            [ObjectNamePart::Identifier(ident)] => fold(&ident.value),
            _ => String::new(),
        };
        let tables = self.cte(&folded);
        self.relations = self.relations.saturating_add(tables.unwrap_or(1));
        if self.relations > RELATIONS_MAX {
            return Err(Error::Limit(format!(
                "a statement of more than {RELATIONS_MAX} tables; common table expressions count wherever they are named"
            )));
        }
        Ok(())
    }

    /// Tables of the common table expression of a name, if there is one.
    fn cte(&self, folded: &str) -> Option<usize> {
        self.ctes[self.hidden_ctes..].iter().rev().find_map(|ctes| ctes.get(folded)).copied()
    }

    /// A name of a column where one is meant.
    fn column(&mut self, ident: &mut Ident) {
        if self.walk == Walk::Fold
            && let Some(name) = self.names.replacement(ident)
        {
            *ident = Ident::with_quote('"', name);
        }
    }

    /// A name that the statement gives to a column or a relation.
    fn alias(&mut self, ident: &mut Ident) {
        let folded = fold(&ident.value);
        match self.walk {
            Walk::Look => {
                self.names.aliases.entry(folded).or_insert_with(|| ident.value.clone());
            }
            Walk::Fold => *ident = Ident::with_quote('"', folded),
        }
    }

    /// The name of a relation, perhaps with its schema and catalog.
    fn relation(&mut self, name: &mut ObjectName) -> Result<()> {
        self.count_relation(name)?;
        if self.is_external(name) {
            return Ok(());
        }
        for part in &mut name.0 {
            match part {
                ObjectNamePart::Identifier(ident) if self.walk == Walk::Fold => {
                    *ident = Ident::with_quote('"', fold(&ident.value));
                }
                ObjectNamePart::Identifier(_) => {}
                ObjectNamePart::Function(function) => {
                    return refuse(&format!("{} as a name", function.name), "write the name");
                }
            }
        }
        if self.walk == Walk::Look
            && let Some(ObjectNamePart::Identifier(last)) = name.0.last()
        {
            self.names.relations.push(last.value.clone());
        }
        Ok(())
    }

    /// A name of a column in a list that may be qualified.
    fn object_columns(&mut self, name: &mut ObjectName) -> Result<()> {
        for part in &mut name.0 {
            match part {
                ObjectNamePart::Identifier(ident) => self.column(ident),
                ObjectNamePart::Function(function) => {
                    return refuse(&format!("{} as a name", function.name), "write the name");
                }
            }
        }
        Ok(())
    }
}
