//! CREATE, DROP and TRUNCATE TABLE, CREATE and DROP INDEX: changes of the catalog only.
//!
//! Making a table that is not there needs the role load on its name, everything else the role admin.

use coload_store::{OnExisting, OnMissing, Store};
use coload_types::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    ColumnOption, CreateTable, CreateTableOptions, HiveDistributionStyle, HiveFormat, ObjectType,
    Statement, TableConstraint, Truncate, WrappedCollection,
};

use super::columns::{schema_of, table_name};
use super::index;
use super::limits::StatementLimits;
use super::shard;
use super::tree::check_depth;
use super::{done, unsupported, view};
use crate::Answer;
use crate::database::Database;
use crate::names::{missing_table, quote};
use crate::rights::{Rights, Role};

/// Runs one of them.
pub(crate) fn run(database: &Database, rights: &Rights, statement: &Statement) -> Result<Answer> {
    match statement {
        Statement::CreateTable(table) if database.options().cluster.is_some() => {
            shard::create(database, rights, table, None)
        }
        Statement::CreateTable(table) => create_table(database.store(), rights, table),
        Statement::CreateIndex(new) => {
            index::create(database.own_store("CREATE INDEX")?, rights, new)
        }
        Statement::Drop { .. } => drop(database, rights, statement),
        _ => Err(Error::Invalid("not a change of the catalog".into())),
    }
}

/// Asks for the right to make a table.
pub(crate) fn require_create(rights: &Rights, on_existing: OnExisting, name: &str) -> Result<()> {
    let role = if on_existing == OnExisting::Replace { Role::Admin } else { Role::Load };
    rights.require(role, name)
}

/// What an existing table of the name means to a CREATE TABLE.
pub(crate) fn on_existing(table: &CreateTable) -> Result<OnExisting> {
    match (table.or_replace, table.if_not_exists) {
        (true, true) => {
            Err(Error::Invalid("OR REPLACE and IF NOT EXISTS exclude each other".into()))
        }
        (true, false) => Ok(OnExisting::Replace),
        (false, true) => Ok(OnExisting::Keep),
        (false, false) => Ok(OnExisting::Fail),
    }
}

/// Refuses what a CREATE TABLE cannot say here. Every field of it is named, so that none is dropped silently.
pub(crate) fn check_create(table: &mut CreateTable, limits: &StatementLimits) -> Result<()> {
    let CreateTable {
        or_replace: _,
        temporary,
        external,
        dynamic,
        global,
        if_not_exists: _,
        transient,
        volatile,
        iceberg,
        snapshot,
        name: _,
        columns,
        constraints,
        hive_distribution,
        hive_formats,
        table_options,
        file_format,
        location,
        query,
        without_rowid,
        like,
        clone,
        version,
        comment,
        on_commit,
        on_cluster,
        primary_key,
        order_by,
        partition_by,
        cluster_by,
        clustered_by,
        inherits,
        partition_of,
        for_values,
        strict,
        copy_grants,
        enable_schema_evolution,
        change_tracking,
        data_retention_time_in_days,
        max_data_extension_time_in_days,
        default_ddl_collation,
        with_aggregation_policy,
        with_row_access_policy,
        with_storage_lifecycle_policy,
        with_tags,
        external_volume,
        base_location,
        catalog,
        catalog_sync,
        storage_serialization_policy,
        target_lag,
        warehouse,
        refresh_mode,
        initialize,
        require_user,
        diststyle,
        distkey,
        sortkey,
        backup,
    } = table;
    let has_format = hive_formats.as_ref().is_some_and(|formats| {
        let HiveFormat { row_format, serde_properties, storage, location } = formats;
        row_format.is_some()
            || serde_properties.is_some()
            || storage.is_some()
            || location.is_some()
    });
    let external = *external || has_format || file_format.is_some() || location.is_some();
    let kinds = [
        (external, "CREATE EXTERNAL TABLE"),
        (*temporary || global.is_some() || *transient || *volatile, "CREATE TEMPORARY TABLE"),
        (*dynamic || *iceberg || *snapshot, "a kind of CREATE TABLE"),
        (like.is_some(), "CREATE TABLE .. LIKE"),
        (clone.is_some(), "CREATE TABLE .. CLONE"),
        (primary_key.is_some(), "PRIMARY KEY"),
        (inherits.is_some(), "INHERITS"),
        (partition_by.is_some() || partition_of.is_some() || for_values.is_some(), "PARTITION BY"),
        (order_by.is_some() || sortkey.is_some(), "ORDER BY of a table"),
        (
            clustered_by.is_some()
                || on_cluster.is_some()
                || cluster_by.is_some() && query.is_some(),
            "CLUSTER BY",
        ),
        (comment.is_some(), "COMMENT of a table"),
        (on_commit.is_some(), "ON COMMIT"),
        (*strict || *without_rowid, "STRICT or WITHOUT ROWID"),
        (*table_options != CreateTableOptions::None, "an option of a table"),
        (*hive_distribution != HiveDistributionStyle::NONE, "PARTITIONED BY"),
        (
            version.is_some()
                || *copy_grants
                || enable_schema_evolution.is_some()
                || change_tracking.is_some()
                || data_retention_time_in_days.is_some()
                || max_data_extension_time_in_days.is_some()
                || default_ddl_collation.is_some()
                || with_aggregation_policy.is_some()
                || with_row_access_policy.is_some()
                || with_storage_lifecycle_policy.is_some()
                || with_tags.is_some()
                || external_volume.is_some()
                || base_location.is_some()
                || catalog.is_some()
                || catalog_sync.is_some()
                || storage_serialization_policy.is_some()
                || target_lag.is_some()
                || warehouse.is_some()
                || refresh_mode.is_some()
                || initialize.is_some()
                || *require_user
                || diststyle.is_some()
                || distkey.is_some()
                || backup.is_some(),
            "a property of a table",
        ),
    ];
    if let Some((_, kind)) = kinds.iter().find(|(is, _)| *is) {
        let instead = match external {
            true => "`coload load` brings files into a table",
            false => "use CREATE TABLE name (columns), or CREATE TABLE .. AS SELECT",
        };
        return Err(unsupported(kind, instead));
    }
    // Rules are read from their text, by functions that call themselves.
    for column in columns {
        for option in &mut column.options {
            match &mut option.option {
                ColumnOption::Check(rule) => check_depth(&mut rule.expr, limits)?,
                ColumnOption::Default(expr) => check_depth(expr, limits)?,
                _ => {}
            }
        }
    }
    for constraint in constraints {
        match constraint {
            TableConstraint::Check(rule) => check_depth(&mut rule.expr, limits)?,
            TableConstraint::PrimaryKey(key) => {
                let mut columns = key.columns.iter_mut();
                columns.try_for_each(|column| check_depth(&mut column.column.expr, limits))?;
            }
            _ => {}
        }
    }
    if let Some(WrappedCollection::NoWrapping(columns) | WrappedCollection::Parentheses(columns)) =
        cluster_by
    {
        columns.iter_mut().try_for_each(|column| check_depth(column, limits))?;
    }
    Ok(())
}

/// CREATE TABLE with columns.
fn create_table(store: &Store, rights: &Rights, table: &CreateTable) -> Result<Answer> {
    let (name, on_existing) = (table_name(&table.name)?, on_existing(table)?);
    require_create(rights, on_existing, &name)?;
    store.create_table(&name, &schema_of(table)?, on_existing)?;
    Ok(done())
}

fn drop(database: &Database, rights: &Rights, statement: &Statement) -> Result<Answer> {
    let Statement::Drop {
        object_type,
        if_exists,
        names,
        cascade,
        restrict: _,
        purge,
        temporary,
        table,
    } = statement
    else {
        return Err(unsupported("DROP", "use DROP TABLE"));
    };
    if !matches!(object_type, ObjectType::Table | ObjectType::View | ObjectType::Index) {
        let what = "there are tables, views and indexes";
        return Err(unsupported(&format!("DROP {object_type}"), what));
    }
    if *cascade || *purge || *temporary || table.is_some() {
        return Err(unsupported(
            &format!("DROP {object_type} with options"),
            "a view of what is gone stays, and says so",
        ));
    }
    let on_missing = if *if_exists { OnMissing::Ignore } else { OnMissing::Fail };
    let cluster = database.options().cluster.as_ref();
    if let Some(cluster) = cluster.filter(|_| *object_type == ObjectType::Table) {
        let names: Vec<String> = names.iter().map(table_name).collect::<Result<_>>()?;
        names.iter().try_for_each(|name| rights.require(Role::Admin, name))?;
        names.iter().try_for_each(|name| cluster.member().drop_table(name, on_missing))?;
        return Ok(done());
    }
    let store = database.own_store("DROP VIEW and DROP INDEX")?;
    if *object_type == ObjectType::Index {
        index::drop(store, rights, names, on_missing)?;
        return Ok(done());
    }
    let names: Vec<String> = names.iter().map(table_name).collect::<Result<_>>()?;
    names.iter().try_for_each(|name| rights.require(Role::Admin, name))?;
    for name in names {
        if *object_type == ObjectType::View {
            store.drop_view(&name, on_missing)?;
            continue;
        }
        match view_of_name(store, rights, &name, on_missing)? {
            Some(view) => store.drop_view(&view, on_missing)?,
            None => {
                require_there(store, rights, &name, on_missing)?;
                store.drop_table(&name, on_missing)?
            }
        };
    }
    Ok(done())
}

/// The external table that a DROP TABLE names, which is a view of inputs.
///
/// # Errors
/// `Invalid` for another view.
fn view_of_name(
    store: &Store,
    rights: &Rights,
    name: &str,
    on_missing: OnMissing,
) -> Result<Option<String>> {
    let snapshot = store.snapshot()?;
    match snapshot.view(name).filter(|view| rights.may_read(&view.name)) {
        Some(view) if view::is_external(view) => Ok(Some(view.name.clone())),
        Some(view) if on_missing == OnMissing::Fail => {
            Err(Error::Invalid(format!("{0} is a view: write DROP VIEW {0}", quote(&view.name))))
        }
        _ => Ok(None),
    }
}

/// Takes all rows of tables away, one table after the other.
pub(crate) async fn truncate_tables(
    database: &Database,
    rights: &Rights,
    truncate: &Truncate,
) -> Result<Answer> {
    let store = database.store();
    let Truncate { table_names, partitions, table: _, if_exists, identity, cascade, on_cluster } =
        truncate;
    if partitions.is_some() {
        return Err(unsupported("TRUNCATE of partitions", "tables have none"));
    }
    if identity.is_some() || cascade.is_some() || on_cluster.is_some() {
        return Err(unsupported("TRUNCATE with options", "write TRUNCATE TABLE name"));
    }
    for target in table_names {
        let name = table_name(&target.name)?;
        rights.require(Role::Admin, &name)?;
        if *if_exists && store.snapshot()?.table(&name).is_none() {
            continue;
        }
        require_there(store, rights, &name, OnMissing::Fail)?;
        match &database.options().cluster {
            None => store.truncate_table(&name).map(|_| ())?,
            Some(cluster) => crate::cluster::truncate(database, cluster, &name).await?,
        }
    }
    Ok(done())
}

/// Says that a table is missing without naming those that the caller may not see, as the store would.
fn require_there(store: &Store, rights: &Rights, name: &str, on_missing: OnMissing) -> Result<()> {
    let snapshot = store.snapshot()?;
    match on_missing {
        OnMissing::Fail if snapshot.table(name).is_none() => {
            Err(missing_table(&snapshot, rights, name))
        }
        _ => Ok(()),
    }
}
