//! Indexes and foreign keys of a table of SQL Server, disabled while rows come: the server keeps their definitions.

use coload_types::Result;

use crate::engine::Connection;
use crate::rebuild::TakenOff;

/// Foreign keys of a table: name, the statement that has them not asked, the one that asks them of all rows, and why one
/// stays, if it does. The name of the table is a parameter, as SQL has it.
const FOREIGN_KEYS_SQL: &str = "\
SELECT f.name, N'ALTER TABLE ' + @P1 + N' NOCHECK CONSTRAINT ' + QUOTENAME(f.name),
       N'ALTER TABLE ' + @P1 + N' WITH CHECK CHECK CONSTRAINT ' + QUOTENAME(f.name),
       CASE WHEN f.is_disabled = 1 OR f.is_not_trusted = 1 THEN N'it is not checked now' END
FROM sys.foreign_keys AS f WHERE f.parent_object_id = OBJECT_ID(@P1) ORDER BY f.object_id";

/// Indexes beside the rows, told alike. Without the one that rows are in (of type 1) there is no table.
const INDEXES_SQL: &str = "\
SELECT i.name, N'ALTER INDEX ' + QUOTENAME(i.name) + N' ON ' + @P1 + N' DISABLE',
       N'ALTER INDEX ' + QUOTENAME(i.name) + N' ON ' + @P1 + N' REBUILD',
       CASE WHEN i.ignore_dup_key = 1 THEN N'it leaves duplicates out'
            WHEN EXISTS (SELECT 1 FROM sys.foreign_keys AS f
                         WHERE f.referenced_object_id = i.object_id AND f.key_index_id = i.index_id)
            THEN N'foreign keys refer to it' END
FROM sys.indexes AS i WHERE i.object_id = OBJECT_ID(@P1) AND i.type = 2 AND i.is_disabled = 0 AND i.is_hypothetical = 0
ORDER BY i.index_id";

/// Takes off what a table has, in the transaction that is open. The table is given as SQL has it.
///
/// # Errors
/// What the server says.
pub fn take_off(on: &mut dyn Connection, table: &str) -> Result<TakenOff> {
    let mut taken = TakenOff::default();
    let mut found = on.ask(FOREIGN_KEYS_SQL, &[table])?;
    found.extend(on.ask(INDEXES_SQL, &[table])?);
    for row in found {
        let mut cells = row.into_iter();
        let mut cell = || cells.next().flatten();
        let (Some(name), Some(off), Some(build)) = (cell(), cell(), cell()) else { continue };
        match cell() {
            Some(why) => taken.kept.push((name, why)),
            None => {
                on.run(&off, &[])?;
                taken.names.push(name);
                // Indexes first: foreign keys are asked by them.
                taken.restore.insert(0, build);
            }
        }
    }
    Ok(taken)
}
