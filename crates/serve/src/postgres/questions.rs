//! Questions of tools about the catalogue that the engine has no words for, as statements that answer the same.
//!
//! Drivers and tools ask in fixed texts, with arrays of rows, fields of values and functions that return tables. A text is known by
//! what no other would have in it; what it names is kept, its parameters and the columns of its answer too.
//!
//! ```text
//!   pgjdbc    keys, indexes and foreign keys of a table, types, best rows, words of the language
//!   psql      \d of a table: policies, statistics, publications, tables that inherit; there are none
//!   Grafana   tables of the schemas in search_path
//! ```
//!
//! All else goes to the engine as it is, and what it does not know is told as an error.

use std::borrow::Cow;

use crate::catalog::SCHEMA;

/// What makes another text of one, if that is the one it knows.
type Answer = fn(&str) -> Option<String>;

/// Each with the parts by which its text is known.
const QUESTIONS: &[(&[&str], Answer)] = &[
    (&["information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ", "PK_NAME"], primary_keys),
    (&["tmp.NON_UNIQUE AS", "information_schema._pg_expandarray(i.indkey)"], indexes),
    (&["AS \"PKTABLE_CAT\"", "con.contype = 'f'"], foreign_keys),
    (
        &["SELECT a.attname, a.atttypid", "information_schema._pg_expandarray(i.indkey) AS keys"],
        best_rows,
    ),
    (&["FROM pg_catalog.pg_type", "select ns.oid as nspoid", "ON sp.nspoid = typnamespace"], types),
    (&["pg_catalog.pg_get_keywords() where word <> ALL"], |_| {
        Some("SELECT 'pivot,summarize,unpivot' AS string_agg".to_owned())
    }),
    (&["string_to_array(current_setting('search_path'),',')", "trim(s[i])"], searched),
    (&["FROM pg_catalog.pg_policy pol"], no_rows),
    (&["FROM pg_catalog.pg_statistic_ext"], no_rows),
    (&["FROM pg_catalog.pg_publication"], no_rows),
    (&["pg_catalog.pg_inherits i", "::pg_catalog.regclass"], no_rows),
    (&["pg_catalog.pg_auth_members m", "ARRAY("], without_memberships),
    (&["pg_catalog.array_to_string(d.datacl,"], |text| {
        // There is nothing in it.
        let shown = "pg_catalog.array_to_string(d.datacl, E'\\n')";
        Some(text.replace(shown, "d.datacl"))
    }),
];

/// The statement that answers a question; the text itself if it is none of these.
pub(super) fn understood(text: &str) -> Cow<'_, str> {
    /// The longest of them has some 5,000.
    const BYTES_MAX: usize = 16 << 10;
    if text.len() > BYTES_MAX {
        return Cow::Borrowed(text);
    }
    let is_of = |parts: &&[&str]| parts.iter().all(|part| text.contains(part));
    let known = QUESTIONS.iter().find(|(parts, _)| is_of(parts));
    known.and_then(|(_, answer)| answer(text)).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// What stands between two marks.
fn between<'a>(text: &'a str, after: &str, before: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(after)?;
    rest.split_once(before).map(|(between, _)| between)
}

/// Conditions of a schema and a table as those of the view of keys.
fn of_keys(conditions: &str) -> String {
    conditions.replace("n.nspname", "k.table_schema").replace("ct.relname", "k.table_name")
}

fn primary_keys(text: &str) -> Option<String> {
    let conditions = of_keys(between(text, "WHERE true", "AND i.indisprimary")?);
    Some(format!(
        "SELECT k.table_catalog AS \"TABLE_CAT\", k.table_schema AS \"TABLE_SCHEM\", k.table_name AS \"TABLE_NAME\", k.column_name AS \
         \"COLUMN_NAME\", k.ordinal_position AS \"KEY_SEQ\", k.constraint_name AS \"PK_NAME\" FROM \
         information_schema.key_column_usage AS k WHERE true {conditions} ORDER BY 3, 6, 5"
    ))
}

fn indexes(text: &str) -> Option<String> {
    let conditions = between(text, "WHERE true", ") AS tmp")?.replace("AND i.indisunique", "");
    let conditions = of_keys(&conditions);
    Some(format!(
        "SELECT k.table_catalog AS \"TABLE_CAT\", k.table_schema AS \"TABLE_SCHEM\", k.table_name AS \"TABLE_NAME\", false AS \
         \"NON_UNIQUE\", CAST(NULL AS VARCHAR) AS \"INDEX_QUALIFIER\", k.constraint_name AS \"INDEX_NAME\", CAST(3 AS SMALLINT) AS \
         \"TYPE\", k.ordinal_position AS \"ORDINAL_POSITION\", k.column_name AS \"COLUMN_NAME\", 'A' AS \"ASC_OR_DESC\", \
         CAST(t.table_rows AS BIGINT) AS \"CARDINALITY\", CAST(0 AS BIGINT) AS \"PAGES\", CAST(NULL AS VARCHAR) AS \
         \"FILTER_CONDITION\", CAST(NULL AS VARCHAR) AS \"REMARKS\" FROM information_schema.key_column_usage AS k JOIN \
         information_schema.tables AS t ON t.table_schema = k.table_schema AND t.table_name = k.table_name WHERE true {conditions} \
         ORDER BY 4, 7, 6, 8"
    ))
}

/// There are none; the parameters are taken all the same.
fn foreign_keys(text: &str) -> Option<String> {
    let texts = [
        "PKTABLE_CAT",
        "PKTABLE_SCHEM",
        "PKTABLE_NAME",
        "PKCOLUMN_NAME",
        "FKTABLE_CAT",
        "FKTABLE_SCHEM",
        "FKTABLE_NAME",
        "FKCOLUMN_NAME",
    ];
    let text_of = |name: &str| format!("CAST(NULL AS VARCHAR) AS \"{name}\"");
    let number_of = |name: &str| format!("CAST(NULL AS SMALLINT) AS \"{name}\"");
    let mut items: Vec<String> = texts.into_iter().map(text_of).collect();
    items.extend(["KEY_SEQ", "UPDATE_RULE", "DELETE_RULE"].map(number_of));
    items.extend(["FK_NAME", "PK_NAME"].map(text_of));
    items.push(number_of("DEFERRABILITY"));
    Some(format!("SELECT {} WHERE false{}", items.join(", "), parameters(text)))
}

/// Conditions that have all parameters of a text.
fn parameters(text: &str) -> String {
    let is_named = |number: &usize| text.contains(&format!("${number}"));
    (1..).take_while(is_named).map(|number| format!(" AND ${number} = ''")).collect()
}

fn best_rows(text: &str) -> Option<String> {
    let conditions = between(text, "WHERE true", "AND i.indisprimary")?;
    Some(format!(
        "SELECT a.attname, a.atttypid, a.atttypmod FROM pg_catalog.pg_class AS ct JOIN pg_catalog.pg_attribute AS a ON ct.oid = \
         a.attrelid JOIN pg_catalog.pg_namespace AS n ON ct.relnamespace = n.oid JOIN information_schema.key_column_usage AS k ON \
         k.table_schema = n.nspname AND k.table_name = ct.relname AND k.column_name = a.attname WHERE true {conditions} ORDER BY \
         a.attnum"
    ))
}

/// All types are of one schema, so that the order of schemas in `search_path` says nothing.
fn types(text: &str) -> Option<String> {
    let at = text.find("(select ns.oid as nspoid")?;
    let start = text[..at].rfind("LEFT")?;
    let end = at + text[at..].find("typnamespace")? + "typnamespace".len();
    let text = format!("{}{}", &text[..start], &text[end..]);
    let is_array = "(left(typname, 1) = '_')";
    Some(text.replace("sp.r, ", "").replace("typinput='pg_catalog.array_in'::regproc", is_array))
}

/// `x IN (SELECT .. string_to_array(current_setting('search_path'), ',') ..)` as `x IN ('public')`.
fn searched(text: &str) -> Option<String> {
    let at = text.find("trim(s[i])")?;
    let start = text[..at]
        .rfind("IN (")
        .or_else(|| text[..at].rfind("IN("))
        .or_else(|| text[..at].rfind("in ("))?;
    let open = start + text[start..].find('(')?;
    let (mut depth, mut quoted) = (0_usize, None);
    for (index, c) in text[open..].char_indices() {
        match (quoted, c) {
            (Some(quote), c) if c == quote => quoted = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quoted = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let end = open + index + 1;
            return Some(format!("{}('{SCHEMA}'){}", &text[..open], &text[end..]));
        }
    }
    None
}

/// Of what there is nothing of.
fn no_rows(text: &str) -> Option<String> {
    Some(format!("SELECT 1 WHERE false{}", parameters(text)))
}

/// Nobody is a member of anybody.
fn without_memberships(text: &str) -> Option<String> {
    let start = text.find("ARRAY(")?;
    let end = start + text[start..].find(')')?;
    // The bracket of the join is the first, that of the array the next.
    let end = end + 1 + text[end + 1..].find(')')? + 1;
    Some(format!("{}'{{}}'{}", &text[..start], &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in ["SELECT 1", "SELECT * FROM pg_catalog.pg_type", "select s[i] from t"] {
            assert!(matches!(understood(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn parameters_and_conditions_are_kept() {
        let text = "SELECT current_database() AS \"PKTABLE_CAT\" FROM x WHERE con.contype = 'f' AND pkn.nspname = $1 AND pkc.relname = $2";
        assert!(understood(text).ends_with("WHERE false AND $1 = '' AND $2 = ''"));
        let text = "SELECT quote_ident(t) FROM s WHERE quote_ident(n) IN (SELECT CASE WHEN trim(s[i]) = '\"$user\"' THEN user ELSE \
                    trim(s[i]) END FROM generate_series(1, 2) as i, string_to_array(current_setting('search_path'),',') s) ORDER BY 1";
        let expected = "SELECT quote_ident(t) FROM s WHERE quote_ident(n) IN ('public') ORDER BY 1";
        assert_eq!(understood(text), expected);
    }
}
