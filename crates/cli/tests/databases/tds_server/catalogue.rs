//! What the server tells of itself: answers to the questions of the catalogue that loads ask, word by word.

use super::store::{Db, Table};
use super::types::{Type, Val, Value, store, wide};

type Answered = (Vec<(String, Type)>, Vec<Vec<Value>>);

/// The answer to a question of the catalogue; `None` where it is none.
pub fn ask(db: &Db, sql: &str, (table, name): (Option<&Table>, &str)) -> Option<Answered> {
    let plain: String = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    let int = |value: i64| Val::Int(value);
    let text = |value: &str| Val::Text(value.to_owned());
    let columns = table.map(|table| table.columns.as_slice()).unwrap_or_default();
    if plain.contains("FROM sys.columns AS c LEFT JOIN sys.types AS t ON t.user_type_id = c.system_type_id WHERE c.object_id = OBJECT_ID(@P1) ORDER BY c.column_id") {
        let rows = columns.iter().map(|column| {
            let of = &column.of;
            let length = match of.kind {
                _ if of.is_max() => -1,
                0x28 => 3,
                _ => i64::from(of.size),
            };
            let page = match (of.is_page_text(), of.utf8) {
                (true, true) => int(65_001),
                (true, false) | (false, _) if of.is_page_text() || of.is_wide_text() => int(1252),
                _ => Val::Null,
            };
            vec![
                text(&column.name),
                text(&of.name),
                int(length),
                int(i64::from(of.precision)),
                int(i64::from(of.scale)),
                int(i64::from(column.nullable)),
                int(i64::from(column.identity)),
                int(i64::from(column.computed.is_some())),
                int(i64::from(column.default.is_some())),
                page,
                int(0),
            ]
        });
        return Some(answer("tt999999999", rows.collect()));
    }
    // What pymssql asks.
    if plain.starts_with("SELECT column_id, TYPE_NAME(system_type_id) AS system_type_name, is_identity FROM sys.columns") {
        let rows = columns.iter().enumerate().map(|(at, column)| {
            vec![int(at as i64 + 1), text(&column.of.name), int(i64::from(column.identity))]
        });
        let (mut names, rows) = answer("9t9", rows.collect());
        for ((name, _), told) in names.iter_mut().zip(["column_id", "system_type_name", "is_identity"]) {
            *name = told.to_owned();
        }
        return Some((names, rows));
    }
    if plain.contains("FROM sys.default_constraints") {
        let rows = columns.iter().filter_map(|column| {
            let default = column.default.as_ref()?;
            Some(vec![text(&column.name), text(&super::tokens::text_of(default))])
        });
        return Some(answer("tt", rows.collect()));
    }
    if plain.contains("FROM sys.check_constraints") {
        let checks = table.map(|table| table.checks.as_slice()).unwrap_or_default();
        let rows = checks.iter().map(|(_, check)| vec![text(&super::tokens::text_of(check))]);
        return Some(answer("t", rows.collect()));
    }
    if plain.contains("SELECT CAST(COUNT(*) AS int) FROM sys.indexes WHERE object_id = OBJECT_ID(@P1) AND index_id > 0") {
        let count = table.map_or(0, |table| table.uniques.len());
        return Some(answer("9", vec![vec![int(count as i64)]]));
    }
    if plain.contains("FROM sys.foreign_keys AS f WHERE f.parent_object_id = OBJECT_ID(@P1)") {
        return Some(answer("tttt", Vec::new()));
    }
    // Indexes beside the rows, and what disables and builds them.
    if plain.contains("FROM sys.indexes AS i WHERE i.object_id = OBJECT_ID(@P1) AND i.type = 2 AND i.is_disabled = 0") {
        let uniques = table.map(|table| table.uniques.as_slice()).unwrap_or_default();
        let rows = uniques.iter().filter(|unique| !unique.primary && !unique.disabled).map(|unique| {
            let alter = format!("ALTER INDEX [{}] ON {name}", unique.name.replace(']', "]]"));
            let why = match unique.ignores {
                true => text("it leaves duplicates out"),
                false => Val::Null,
            };
            vec![
                text(&unique.name),
                text(&format!("{alter} DISABLE")),
                text(&format!("{alter} REBUILD")),
                why,
            ]
        });
        return Some(answer("tttt", rows.collect()));
    }
    if plain.contains("FROM sys.indexes AS i JOIN sys.index_columns AS ic") {
        let is_like = plain.contains("is_descending_key");
        let uniques = table.map(|table| table.uniques.as_slice()).unwrap_or_default();
        let mut rows = Vec::new();
        for (number, unique) in uniques.iter().enumerate() {
            for at in &unique.columns {
                let column = &columns[*at];
                let mut row = vec![int(number as i64 + 1), text(&column.name)];
                if is_like {
                    row.extend([int(0), Val::Null, int(i64::from(unique.ignores))]);
                } else {
                    row.extend([int(i64::from(column.nullable)), text(&column.of.name)]);
                }
                rows.push(row);
            }
        }
        return Some(answer(if is_like { "9t9t9" } else { "9t9t" }, rows));
    }
    if plain.contains("FROM sys.allocation_units") || plain.contains("JOIN sys.allocation_units") {
        let rows = table.map_or(0, |table| table.rows.len() as i64);
        return Some(answer("8", vec![vec![int(rows / 100 + 1)]]));
    }
    if plain.contains("SUM(p.rows)") {
        return Some(answer(
            "8",
            vec![vec![int(table.map_or(0, |table| table.rows.len() as i64))]],
        ));
    }
    if plain.contains("snapshot_isolation_state") {
        return Some(answer("999", vec![vec![int(i64::from(!db.no_snapshots)), int(0), int(1)]]));
    }
    if plain.contains("FROM sys.dm_exec_requests") {
        return Some(answer("99", vec![vec![int(0), int(0)]]));
    }
    if plain.contains("FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA =") {
        let names = db.tables.keys().filter_map(|key| key.split('\u{1}').next_back());
        let rows = names.filter(|name| name.starts_with("_coload_"));
        return Some(answer("t", rows.map(|name| vec![text(&format!("{name:<64}"))]).collect()));
    }
    None
}

/// Columns of these kinds (text, whole numbers of four and of eight bytes), and rows.
fn answer(kinds: &str, rows: Vec<Vec<Val>>) -> Answered {
    let types: Vec<Type> = kinds
        .chars()
        .map(|kind| match kind {
            't' => Type::text(),
            '8' => Type::bigint(),
            _ => Type::int(),
        })
        .collect();
    let rows = rows.iter().map(|row| {
        let cell = |(value, of): (&Val, &Type)| match (value, of.is_wide_text()) {
            (Val::Text(text), true) => Some(wide(text)),
            _ => store(value, of, "").unwrap_or(None),
        };
        row.iter().zip(&types).map(cell).collect()
    });
    let rows = rows.collect();
    (types.into_iter().map(|of| (String::new(), of)).collect(), rows)
}
