//! PIVOT and UNPIVOT as DuckDB spells them: the text of a statement is written anew before it is planned.
//!
//! ```text
//!   PIVOT t ON c USING sum(x) GROUP BY y
//!     -->  SELECT y, sum(x) FILTER (WHERE c = 'v') AS "v", .. FROM t GROUP BY y       a column for each value of c
//!   UNPIVOT t ON a, b INTO NAME n VALUE v
//!     -->  SELECT .., n, CASE .. WHEN 1 THEN a WHEN 2 THEN b END AS v FROM t CROSS JOIN (VALUES (1, 'a'), (2, 'b')), without NULL
//! ```
//!
//! They stand where a query stands: at the start, behind common table expressions, EXPLAIN and AS, and in brackets. What is not said
//! is asked for by queries of their own, with the rights of the caller, before the statement: the values of `c` (unless IN names
//! them), and the columns of the table (unless GROUP BY names the groups). Values that come between the two are no columns.
//!
//! Not here: `FROM t PIVOT (..)`, whose values would have to be known while the tree is looked at.

mod sql;
mod syntax;

use coload_types::{Error, Result};
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, SchemaRef};

use self::sql::Values;
use self::syntax::{Form, Found, find};
use super::{Parameters, plan_written};
use crate::database::Database;
use crate::rights::Rights;

/// Columns that the values of one PIVOT may become.
const COLUMNS_MAX: usize = 1_000;
/// PIVOTs of a statement.
const PIVOTS_MAX: usize = 10;

/// Whether a text may have one of them.
pub(super) fn is_named(text: &str) -> bool {
    const WORD: &[u8] = b"pivot";
    let text = text.as_bytes();
    let is_it = |at: usize| {
        text[at..].get(..WORD.len()).is_some_and(|part| part.eq_ignore_ascii_case(WORD))
    };
    memchr::memchr2_iter(b'p', b'P', text).any(is_it)
}

/// The same statement without them.
///
/// # Errors
/// `Invalid` when one is not whole or names what is not there, `Limit` when it would have too many columns.
pub(super) async fn written_anew(
    database: &Database,
    rights: &Rights,
    text: &str,
) -> Result<String> {
    let asking = Asking { database, rights };
    let mut text = text.to_owned();
    for _ in 0..PIVOTS_MAX {
        let limits = database.options().statements;
        let whole = text.clone();
        let look = move || async move { find(&whole, &limits) };
        let Some(found) = database.planner().run(rights.user(), look).await? else {
            return Ok(text);
        };
        let query = asking.query(&found, &text[..found.scope]).await?;
        text.replace_range(found.place, &query);
    }
    Err(Error::Limit(format!("a statement of more than {PIVOTS_MAX} PIVOTs")))
}

/// Asks for what a statement does not say.
struct Asking<'a> {
    database: &'a Database,
    rights: &'a Rights,
}

impl Asking<'_> {
    /// The query that takes the place of a form; `with` is what stands before it and it may name.
    async fn query(&self, found: &Found, with: &str) -> Result<String> {
        match &found.form {
            Form::Pivot(pivot) => {
                let groups = match &pivot.groups {
                    Some(groups) => groups.iter().map(ToString::to_string).collect(),
                    None => {
                        let columns = self.columns(with, &pivot.from).await?;
                        sql::other_columns(pivot, &columns)
                    }
                };
                let mut values = Vec::with_capacity(pivot.on.len());
                for on in &pivot.on {
                    values.push(match &on.values {
                        Some(named) => sql::named_values(on, named)?,
                        None if found.is_kept => {
                            return Err(Error::Invalid(format!(
                                "a view keeps the columns that it is made with: name the values of {0}, as in ON {0} IN ('a', 'b')",
                                on.expr
                            )));
                        }
                        None => self.values(with, &pivot.from, &on.expr.to_string()).await?,
                    });
                }
                sql::pivoted(pivot, &groups, &values)
            }
            Form::Unpivot(unpivot) => {
                let columns = self.columns(with, &unpivot.from).await?;
                sql::unpivoted(unpivot, &columns)
            }
        }
    }

    /// The columns of what is read.
    async fn columns(&self, with: &str, from: &str) -> Result<SchemaRef> {
        let text = format!("{with}SELECT * FROM {from}");
        let none = Parameters::default();
        let planned = plan_written(self.database, self.rights, &text, none).await?;
        Ok(planned.schema().clone())
    }

    /// The values of an expression, in order.
    async fn values(&self, with: &str, from: &str, expr: &str) -> Result<Values> {
        /// How often it is asked again, where inputs turn out to need other types.
        const TRIES_MAX: usize = 100;
        let text = format!(
            "{with}SELECT CAST(v AS VARCHAR), v FROM (SELECT DISTINCT {expr} AS v FROM {from}) AS d WHERE v IS NOT NULL \
             ORDER BY v LIMIT {}",
            COLUMNS_MAX + 1
        );
        let mut tries = 1;
        loop {
            let none = Parameters::default();
            let planned = plan_written(self.database, self.rights, &text, none).await?;
            if !planned.parameters().fields().is_empty() {
                return Err(Error::Invalid(format!(
                    "PIVOT of what a parameter is in: name the values, as in ON {expr} IN ('a', 'b')"
                )));
            }
            let (experience, own) = (planned.experience(), self.database.clone());
            let data_type = planned.schema().field(1).data_type().clone();
            // It runs as statements do: not on a thread of the network, and no longer than somebody waits for it.
            let run = async move { planned.run(&own).await?.collect().await };
            let ran = self.database.spawn_owned_of(self.rights.user(), run)?.await;
            let batches = match ran.map_err(|e| Error::Refused(format!("internal error: {e}")))? {
                Err(_) if experience.has_learned() && tries < TRIES_MAX => {
                    tries += 1;
                    continue;
                }
                ran => ran?,
            };
            let mut texts = Vec::new();
            for batch in batches {
                let column = cast(batch.column(0), &ArrowType::Utf8);
                let column = column.map_err(|e| Error::Refused(format!("internal error: {e}")))?;
                let column = column.as_string::<i32>();
                texts.extend((0..column.len()).map(|row| column.value(row).to_owned()));
            }
            if texts.len() > COLUMNS_MAX {
                return Err(Error::Limit(format!(
                    "PIVOT: {expr} has over {COLUMNS_MAX} values, each of which would be a column: name those that are wanted, \
                     as in ON {expr} IN ('a', 'b')"
                )));
            }
            return Ok(Values::found(expr, texts, &data_type));
        }
    }
}
