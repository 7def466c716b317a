//! Indexes and constraints of a table of PostgreSQL, taken off and built again by statements that the server writes itself.

use coload_types::Result;

use crate::engine::Connection;
use crate::rebuild::TakenOff;

/// Constraints of a table (keys, exclusions, foreign keys): name, the statement that drops it, those that make it again, and
/// why it stays, if it does. Foreign keys are dropped first: they need keys.
///
/// What others depend on is of deptype `n`: foreign keys that refer to a key, views that group by one.
const CONSTRAINTS_SQL: &str = "\
SELECT k.conname::text,
       format('ALTER TABLE %s DROP CONSTRAINT %I', k.conrelid::regclass, k.conname),
       format('ALTER TABLE %s ADD CONSTRAINT %I %s', k.conrelid::regclass, k.conname, pg_get_constraintdef(k.oid)),
       CASE WHEN obj_description(k.oid, 'pg_constraint') IS NOT NULL
            THEN format('COMMENT ON CONSTRAINT %I ON %s IS %L', k.conname, k.conrelid::regclass,
                        obj_description(k.oid, 'pg_constraint')) END,
       CASE WHEN obj_description(i.indexrelid, 'pg_class') IS NOT NULL
            THEN format('COMMENT ON INDEX %s IS %L', i.indexrelid::regclass,
                        obj_description(i.indexrelid, 'pg_class')) END,
       CASE WHEN k.coninhcount > 0 OR NOT k.conislocal THEN 'it is inherited'
            WHEN k.contype = 'f' AND EXISTS (SELECT FROM pg_trigger AS g WHERE g.tgconstraint = k.oid AND g.tgenabled <> 'O')
            THEN 'its triggers are disabled'
            WHEN EXISTS (SELECT FROM pg_depend AS d WHERE d.deptype = 'n' AND
                         (d.refclassid, d.refobjid) IN (('pg_constraint'::regclass, k.oid), ('pg_class'::regclass, i.indexrelid)))
            THEN 'something else needs it'
            WHEN i.indisreplident THEN 'it identifies rows for replication'
            WHEN i.indisclustered THEN 'the table is clustered by it'
            WHEN NOT i.indisvalid THEN 'it is not valid'
            WHEN c.reltablespace <> 0 THEN 'it is in a tablespace of its own' END
FROM pg_constraint AS k
LEFT JOIN pg_index AS i ON i.indexrelid = k.conindid AND k.contype IN ('p', 'u', 'x')
LEFT JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE k.conrelid = to_regclass($1) AND k.contype IN ('p', 'u', 'x', 'f')
ORDER BY k.contype = 'f' DESC, k.contype = 'p', k.oid";

/// Indexes that are of no constraint, told alike.
const INDEXES_SQL: &str = "\
SELECT c.relname::text,
       format('DROP INDEX %s', i.indexrelid::regclass),
       pg_get_indexdef(i.indexrelid),
       CASE WHEN obj_description(i.indexrelid, 'pg_class') IS NOT NULL
            THEN format('COMMENT ON INDEX %s IS %L', i.indexrelid::regclass,
                        obj_description(i.indexrelid, 'pg_class')) END,
       NULL::text,
       CASE WHEN EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhrelid = i.indexrelid) THEN 'it is inherited'
            WHEN EXISTS (SELECT FROM pg_depend AS d WHERE d.deptype = 'n' AND d.refclassid = 'pg_class'::regclass
                         AND d.refobjid = i.indexrelid)
            THEN 'something else needs it'
            WHEN i.indisreplident THEN 'it identifies rows for replication'
            WHEN i.indisclustered THEN 'the table is clustered by it'
            WHEN NOT i.indisvalid THEN 'it is not valid'
            WHEN c.reltablespace <> 0 THEN 'it is in a tablespace of its own'
            WHEN EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = i.indexrelid AND a.attstattarget > 0)
            THEN 'its statistics are set' END
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE i.indrelid = to_regclass($1)
AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))
ORDER BY i.indexrelid";

/// Why a table keeps all it has: it is none whose indexes are its own.
const TABLE_SQL: &str = "\
SELECT CASE WHEN c.relkind <> 'r' THEN 'it is no ordinary table'
            WHEN c.relispartition OR c.relhassubclass THEN 'it is part of others, or has parts' END
FROM pg_class AS c WHERE c.oid = to_regclass($1)";

/// Why nothing is taken off a table, if so.
///
/// # Errors
/// What the server says.
pub fn keeps_indexes(on: &mut dyn Connection, table: &str) -> Result<Option<String>> {
    Ok(on.ask(TABLE_SQL, &[table])?.into_iter().flatten().flatten().next())
}

/// Takes off what a table has, in the transaction that is open. The table is given as SQL has it.
///
/// # Errors
/// What the server says.
pub fn take_off(on: &mut dyn Connection, table: &str) -> Result<TakenOff> {
    let mut taken = TakenOff::default();
    let mut found = on.ask(CONSTRAINTS_SQL, &[table])?;
    found.extend(on.ask(INDEXES_SQL, &[table])?);
    let (mut dropped, mut restore) = (Vec::new(), Vec::new());
    for row in found {
        let mut cells = row.into_iter();
        let mut cell = || cells.next().flatten();
        let (Some(name), Some(drop), Some(make)) = (cell(), cell(), cell()) else { continue };
        let comments = [cell(), cell()];
        match cell() {
            Some(why) => taken.kept.push((name, why)),
            None => {
                taken.names.push(name);
                dropped.push(drop);
                restore
                    .push([Some(make)].into_iter().chain(comments).flatten().collect::<Vec<_>>());
            }
        }
    }
    for sql in dropped {
        on.run(&sql, &[])?;
    }
    // In the other order: indexes and keys, and then what needs keys.
    taken.restore = restore.into_iter().rev().flatten().collect();
    Ok(taken)
}
