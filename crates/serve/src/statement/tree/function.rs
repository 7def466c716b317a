//! Calls of functions. What a kind of function does not look at is refused there.

use coload_types::Result;
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, NullTreatment, ObjectName, ObjectNamePart,
};

use super::{Walker, refuse};
use crate::functions::{Kind, kind_of};

/// Functions that tell NULL values from others where IGNORE NULLS says so.
const NULL_TREATMENT: [&str; 5] = ["first_value", "last_value", "nth_value", "lag", "lead"];

impl Walker<'_> {
    pub(super) fn function(&mut self, function: &mut Function) -> Result<()> {
        let Function {
            name,
            uses_odbc_syntax: _,
            parameters,
            args,
            filter,
            null_treatment,
            over,
            within_group,
        } = function;
        let called = function_name(name)?;
        let kind = kind_of(&called);
        if *parameters != FunctionArguments::None {
            return refuse("a second list of arguments", "give all arguments in one list");
        }
        let is_scalar = matches!(kind, Some(Kind::Scalar));
        let only_groups = |what: &str| {
            refuse(&format!("{what} in {called}()"), "it is for functions of several rows")
        };
        if is_scalar && filter.is_some() {
            return only_groups("FILTER");
        }
        if is_scalar && over.is_some() {
            return only_groups("OVER");
        }
        if is_scalar && !within_group.is_empty() {
            return only_groups("WITHIN GROUP");
        }
        check_nulls(*null_treatment, &called)?;
        match args {
            FunctionArguments::None => {}
            FunctionArguments::Subquery(_) => {
                return refuse("a query as the arguments", "write it in parentheses of its own");
            }
            FunctionArguments::List(list) => {
                self.arguments(list, &called, is_scalar, over.is_some())?;
            }
        }
        if let Some(filter) = filter {
            self.expr(filter)?;
        }
        self.order_exprs(within_group)?;
        match over {
            Some(window) => self.over(window),
            None => Ok(()),
        }
    }

    fn arguments(
        &mut self,
        list: &mut FunctionArgumentList,
        called: &str,
        is_scalar: bool,
        is_window: bool,
    ) -> Result<()> {
        let FunctionArgumentList { duplicate_treatment, args, clauses } = list;
        if is_scalar && *duplicate_treatment == Some(DuplicateTreatment::Distinct) {
            return refuse(
                &format!("DISTINCT in {called}()"),
                "it is for functions of several rows",
            );
        }
        for clause in clauses {
            match clause {
                FunctionArgumentClause::OrderBy(_) if is_scalar => {
                    return refuse(
                        &format!("ORDER BY in {called}()"),
                        "it is for functions of several rows",
                    );
                }
                FunctionArgumentClause::OrderBy(_) if is_window => {
                    return refuse("ORDER BY among the arguments", "write it into OVER");
                }
                FunctionArgumentClause::OrderBy(exprs) => self.order_exprs(exprs)?,
                FunctionArgumentClause::IgnoreOrRespectNulls(nulls) => {
                    check_nulls(Some(*nulls), called)?;
                }
                FunctionArgumentClause::Limit(_)
                | FunctionArgumentClause::OnOverflow(_)
                | FunctionArgumentClause::Having(_)
                | FunctionArgumentClause::Separator(_)
                | FunctionArgumentClause::JsonNullClause(_)
                | FunctionArgumentClause::JsonReturningClause(_) => {
                    return refuse(&format!("{clause} among arguments"), "leave it out");
                }
            }
        }
        args.iter_mut().try_for_each(|arg| self.argument(arg))
    }

    pub(super) fn argument(&mut self, arg: &mut FunctionArg) -> Result<()> {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => self.expr(expr),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => Ok(()),
            FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => {
                self.object_columns(name)
            }
            FunctionArg::Unnamed(FunctionArgExpr::WildcardWithOptions(options)) => {
                refuse(&format!("{options} as an argument"), "name the columns")
            }
            FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
                refuse("an argument with a name", "give the arguments in their order")
            }
        }
    }
}

/// The name of a function in lower case.
pub(super) fn function_name(name: &ObjectName) -> Result<String> {
    match &name.0[..] {
        [ObjectNamePart::Identifier(ident)] => Ok(ident.value.to_ascii_lowercase()),
        _ => refuse(&format!("the function {name}"), "functions have no schema"),
    }
}

fn check_nulls(treatment: Option<NullTreatment>, called: &str) -> Result<()> {
    match treatment {
        Some(NullTreatment::IgnoreNulls) if !NULL_TREATMENT.contains(&called) => {
            refuse(&format!("IGNORE NULLS in {called}()"), "add FILTER (WHERE x IS NOT NULL)")
        }
        _ => Ok(()),
    }
}
