//! Tables and joins.

use coload_types::Result;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Join, JoinConstraint,
    JoinOperator, ObjectName, ObjectNamePart, TableAlias, TableAliasColumnDef, TableFactor,
    TableFunctionArgs, TableWithJoins,
};

use super::function::function_name;
use super::{Walk, Walker, refuse};
use crate::external::reference::{self, ExternalReference};
use crate::functions::TABLE_FUNCTIONS;
use crate::functions::ordinals::ORDINALS;

impl Walker<'_> {
    pub(super) fn table_with_joins(&mut self, table: &mut TableWithJoins) -> Result<()> {
        self.deeper(|walker| {
            let TableWithJoins { relation, joins } = table;
            walker.factor(relation)?;
            joins.iter_mut().try_for_each(|join| walker.join(join))
        })
    }

    fn join(&mut self, join: &mut Join) -> Result<()> {
        let Join { relation, global, join_operator } = join;
        if *global {
            return refuse("GLOBAL JOIN", "leave GLOBAL out");
        }
        self.factor(relation)?;
        match join_operator {
            JoinOperator::CrossJoin(JoinConstraint::None) => Ok(()),
            JoinOperator::CrossJoin(_) => refuse("CROSS JOIN with ON", "write JOIN .. ON"),
            // What `outer_using` has left: the planner takes the column of the left side, which is NULL where only the right
            // has a row.
            JoinOperator::Right(JoinConstraint::Using(_) | JoinConstraint::Natural)
            | JoinOperator::RightOuter(JoinConstraint::Using(_) | JoinConstraint::Natural)
            | JoinOperator::FullOuter(JoinConstraint::Using(_) | JoinConstraint::Natural)
                if self.walk == Walk::Fold =>
            {
                refuse(
                    "this RIGHT or FULL JOIN with USING or NATURAL (it may be of two tables, its columns not named in subqueries)",
                    "write ON a.x = b.x, and coalesce(a.x, b.x) for its column",
                )
            }
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint)
            | JoinOperator::LeftSemi(constraint)
            | JoinOperator::RightSemi(constraint)
            | JoinOperator::LeftAnti(constraint)
            | JoinOperator::RightAnti(constraint) => self.constraint(constraint),
            JoinOperator::Semi(_) | JoinOperator::Anti(_) => {
                refuse("SEMI or ANTI JOIN", "write LEFT SEMI JOIN or LEFT ANTI JOIN")
            }
            JoinOperator::StraightJoin(_) => refuse("STRAIGHT_JOIN", "write JOIN"),
            JoinOperator::AsOf { .. } => refuse("ASOF JOIN", "join on a condition"),
            JoinOperator::CrossApply | JoinOperator::OuterApply => {
                refuse("APPLY", "write JOIN LATERAL")
            }
            JoinOperator::ArrayJoin
            | JoinOperator::LeftArrayJoin
            | JoinOperator::InnerArrayJoin => refuse("ARRAY JOIN", "write SELECT unnest(x)"),
        }
    }

    fn constraint(&mut self, constraint: &mut JoinConstraint) -> Result<()> {
        match constraint {
            JoinConstraint::On(expr) => self.expr(expr),
            JoinConstraint::Using(names) => {
                names.iter_mut().try_for_each(|name| self.object_columns(name))
            }
            JoinConstraint::Natural => Ok(()),
            // The planner would join each row with each.
            JoinConstraint::None => {
                refuse("JOIN without ON or USING", "say on what, or write CROSS JOIN")
            }
        }
    }

    pub(super) fn factor(&mut self, factor: &mut TableFactor) -> Result<()> {
        self.deeper(|walker| walker.factor_here(factor))
    }

    fn factor_here(&mut self, factor: &mut TableFactor) -> Result<()> {
        if let Some(unnest) = unnest_of_lateral(factor) {
            *factor = unnest;
        }
        match factor {
            TableFactor::Table { .. } => match self.view(factor) {
                Some(looked) => looked,
                None => self.table(factor),
            },
            TableFactor::Derived { lateral: _, subquery, alias, sample } => {
                if sample.is_some() {
                    return refuse("TABLESAMPLE", SAMPLE_INSTEAD);
                }
                self.optional_alias(alias)?;
                self.with_names_unseen(false, |walker| walker.query(subquery))
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                self.optional_alias(alias)?;
                self.table_with_joins(table_with_joins)
            }
            TableFactor::Function { lateral: _, name, args, with_ordinality, alias } => {
                if *with_ordinality {
                    return refuse("WITH ORDINALITY", "number the rows with row_number()");
                }
                self.table_function(name, args)?;
                self.optional_alias(alias)
            }
            TableFactor::TableFunction { .. } => refuse("TABLE(..)", "write the function itself"),
            TableFactor::UNNEST {
                alias,
                array_exprs,
                with_offset,
                with_offset_alias: _,
                with_ordinality,
            } => {
                if *with_offset {
                    return refuse("WITH OFFSET", "write WITH ORDINALITY, which counts from 1");
                }
                if std::mem::take(with_ordinality) {
                    let [list] = &array_exprs[..] else {
                        return refuse(
                            "WITH ORDINALITY of several lists",
                            "write array_ordinals(list) as a further one",
                        );
                    };
                    let numbers = ordinals_of(list)?;
                    name_elements(alias, &["unnest", "ordinality"]);
                    array_exprs.push(numbers);
                } else if array_exprs.len() == 1 {
                    name_elements(alias, &["unnest"]);
                }
                self.exprs(array_exprs)?;
                self.optional_alias(alias)
            }
            TableFactor::JsonTable { .. } | TableFactor::OpenJsonTable { .. } => {
                refuse("JSON_TABLE", "there is no JSON")
            }
            TableFactor::Pivot { .. } | TableFactor::Unpivot { .. } => refuse(
                "PIVOT behind a table",
                "write FROM (PIVOT t ON c USING sum(x) GROUP BY y), or FROM (UNPIVOT t ON a, b INTO NAME n VALUE v)",
            ),
            TableFactor::MatchRecognize { .. } => refuse("MATCH_RECOGNIZE", "use lag and lead"),
            TableFactor::XmlTable { .. } => refuse("XMLTABLE", "there is no XML"),
            TableFactor::SemanticView { .. } => refuse("SEMANTIC_VIEW", "there are tables only"),
        }
    }

    fn table(&mut self, factor: &mut TableFactor) -> Result<()> {
        let TableFactor::Table {
            name,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } = factor
        else {
            return Ok(());
        };
        if sample.is_some() {
            return refuse("TABLESAMPLE", SAMPLE_INSTEAD);
        }
        let refused = [
            (!with_hints.is_empty() || !index_hints.is_empty(), "a hint"),
            (version.is_some(), "a version of a table"),
            (*with_ordinality, "WITH ORDINALITY"),
            (!partitions.is_empty(), "PARTITION"),
            (json_path.is_some(), "a path into JSON"),
        ];
        if let Some((_, what)) = refused.iter().find(|(is_there, _)| *is_there) {
            return refuse(&format!("{what} after {name}"), "leave it out");
        }
        let reference = match args {
            None => reference::of_name(name),
            Some(args) => self.read_function(name, &args.args)?,
        };
        if let Some(reference) = reference {
            if args.as_ref().is_some_and(|args| args.settings.is_some()) {
                return refuse("SETTINGS of a function", "leave it out");
            }
            self.name_inputs(alias, &reference);
            *args = None;
            self.external(name, reference);
        } else if args.is_none() {
            self.qualify(name, alias);
        }
        self.optional_alias(alias)?;
        match args {
            None => self.relation(name),
            Some(TableFunctionArgs { args, settings }) => {
                if settings.is_some() {
                    return refuse("SETTINGS of a function", "leave it out");
                }
                self.table_function(name, args)
            }
        }
    }

    /// The inputs that a function reads, if it does.
    fn read_function(
        &self,
        name: &ObjectName,
        args: &[FunctionArg],
    ) -> Result<Option<ExternalReference>> {
        reference::of_function(&function_name(name)?, args)
    }

    fn table_function(&mut self, name: &ObjectName, args: &mut [FunctionArg]) -> Result<()> {
        let called = function_name(name)?;
        if !TABLE_FUNCTIONS.contains(&called.as_str()) {
            return refuse(
                &format!("the table function {called}"),
                &format!(
                    "there is {}",
                    TABLE_FUNCTIONS
                        .into_iter()
                        .chain(reference::function_names())
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            );
        }
        args.iter_mut().try_for_each(|arg| self.argument(arg))
    }

    fn optional_alias(&mut self, alias: &mut Option<TableAlias>) -> Result<()> {
        alias.as_mut().map_or(Ok(()), |alias| self.table_alias(alias))
    }

    pub(super) fn table_alias(&mut self, alias: &mut TableAlias) -> Result<()> {
        let TableAlias { explicit: _, name, columns, at } = alias;
        if at.is_some() {
            return refuse("AT after an alias", "number the rows with row_number()");
        }
        self.alias(name);
        for TableAliasColumnDef { name, data_type } in columns {
            if data_type.is_some() {
                return refuse("a type in a list of columns", "write CAST in the SELECT");
            }
            self.alias(name);
        }
        Ok(())
    }
}

/// Names the columns of unnest() that have no names as PostgreSQL does: the first as the table, which is `unnest` by itself.
fn name_elements(alias: &mut Option<TableAlias>, columns: &[&str]) {
    let alias = alias.get_or_insert_with(|| TableAlias {
        explicit: true,
        name: Ident::new(columns[0]),
        columns: Vec::new(),
        at: None,
    });
    for number in alias.columns.len()..columns.len() {
        let name = match number {
            0 => alias.name.clone(),
            other => Ident::new(columns[other]),
        };
        alias.columns.push(TableAliasColumnDef { name, data_type: None });
    }
}

/// The numbers of the elements of a list.
fn ordinals_of(list: &Expr) -> Result<Expr> {
    let call = super::spoken::expression(&format!("{ORDINALS}(NULL)"));
    let Some(Expr::Function(mut call)) = call else {
        return refuse("WITH ORDINALITY", "number the rows with row_number()");
    };
    if let FunctionArguments::List(arguments) = &mut call.args {
        arguments.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(list.clone()))];
    }
    Ok(Expr::Function(call))
}

const SAMPLE_INSTEAD: &str = "write WHERE random() < 0.01";

/// `LATERAL unnest(x)`, which the parser takes for a function like others, as `unnest(x)`, which sees the tables before it anyway.
fn unnest_of_lateral(factor: &TableFactor) -> Option<TableFactor> {
    let TableFactor::Function { lateral: true, name, args, with_ordinality, alias } = factor else {
        return None;
    };
    let [ObjectNamePart::Identifier(name)] = &name.0[..] else { return None };
    let lists = args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(list)) => Some(list.clone()),
        _ => None,
    });
    let array_exprs = lists.collect::<Option<Vec<_>>>()?;
    name.value.eq_ignore_ascii_case("unnest").then(|| TableFactor::UNNEST {
        alias: alias.clone(),
        array_exprs,
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: *with_ordinality,
    })
}
