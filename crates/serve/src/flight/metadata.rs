//! What drivers ask about the server and its tables.

use std::sync::{Arc, LazyLock};

use arrow_flight::error::FlightError;
use arrow_flight::sql::metadata::{
    SqlInfoData, SqlInfoDataBuilder, XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder,
};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetTables, Nullable, Searchable, SqlInfo,
    SqlSupportedCaseSensitivity, SqlSupportedTransaction, XdbcDataType,
};
use coload_store::Snapshot;
use coload_types::{DataType, Error, Result};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;

use super::wire_types::wire_schema;
use crate::catalog::{CATALOG, SCHEMA};
use crate::rights::Rights;
use crate::types::arrow_schema;

/// The only type of table.
pub(crate) const TABLE_TYPE: &str = "TABLE";

/// What the server is and can.
pub(crate) static SQL_INFO: LazyLock<std::result::Result<SqlInfoData, FlightError>> =
    LazyLock::new(|| {
        let mut info = SqlInfoDataBuilder::new();
        info.append(SqlInfo::FlightSqlServerName, "Coload");
        info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
        // Of the columnar format, not of the library.
        info.append(SqlInfo::FlightSqlServerArrowVersion, "1.3");
        info.append(SqlInfo::FlightSqlServerReadOnly, false);
        info.append(SqlInfo::FlightSqlServerSql, true);
        info.append(SqlInfo::FlightSqlServerSubstrait, false);
        info.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
        info.append(SqlInfo::FlightSqlServerCancel, true);
        info.append(SqlInfo::FlightSqlServerBulkIngestion, true);
        info.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, false);
        info.append(SqlInfo::SqlDdlCatalog, false);
        info.append(SqlInfo::SqlDdlSchema, false);
        info.append(SqlInfo::SqlDdlTable, true);
        info.append(
            SqlInfo::SqlIdentifierCase,
            SqlSupportedCaseSensitivity::SqlCaseSensitivityCaseInsensitive as i32,
        );
        info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
        info.append(
            SqlInfo::SqlQuotedIdentifierCase,
            SqlSupportedCaseSensitivity::SqlCaseSensitivityCaseInsensitive as i32,
        );
        info.append(SqlInfo::SqlAllTablesAreSelectable, true);
        info.append(SqlInfo::SqlSchemaTerm, "schema");
        info.append(SqlInfo::SqlCatalogTerm, "catalog");
        info.append(SqlInfo::SqlCatalogAtStart, true);
        info.append(SqlInfo::SqlSearchStringEscape, "\\");
        info.build()
    });

/// The SQL types, as JDBC and ODBC know them.
pub(crate) static TYPE_INFO: LazyLock<std::result::Result<XdbcTypeInfoData, FlightError>> =
    LazyLock::new(|| {
        let mut builder = XdbcTypeInfoDataBuilder::new();
        for (data_type, xdbc, size) in [
            (DataType::Boolean, XdbcDataType::XdbcBit, 1),
            (DataType::SmallInt, XdbcDataType::XdbcSmallint, 5),
            (DataType::Integer, XdbcDataType::XdbcInteger, 10),
            (DataType::BigInt, XdbcDataType::XdbcBigint, 19),
            (DataType::Decimal { precision: 38, scale: 0 }, XdbcDataType::XdbcDecimal, 38),
            (DataType::Real, XdbcDataType::XdbcReal, 7),
            (DataType::Double, XdbcDataType::XdbcDouble, 15),
            (DataType::Date, XdbcDataType::XdbcDate, 10),
            (DataType::Time, XdbcDataType::XdbcTime, 15),
            (DataType::Timestamp, XdbcDataType::XdbcTimestamp, 26),
            (DataType::Varchar(None), XdbcDataType::XdbcVarchar, i32::MAX),
            (DataType::Binary(None), XdbcDataType::XdbcVarbinary, i32::MAX),
        ] {
            builder.append(type_info(data_type, xdbc, size));
        }
        builder.build()
    });

fn type_info(data_type: DataType, xdbc: XdbcDataType, size: i32) -> XdbcTypeInfo {
    let name = data_type.to_string();
    let name = name.split('(').next().unwrap_or_default().to_owned();
    let is_text = matches!(data_type, DataType::Varchar(_));
    let is_number = size <= 38 && !is_text;
    XdbcTypeInfo {
        local_type_name: Some(name.clone()),
        type_name: name,
        data_type: xdbc,
        column_size: Some(size),
        literal_prefix: is_text.then(|| "'".to_owned()),
        literal_suffix: is_text.then(|| "'".to_owned()),
        create_params: matches!(data_type, DataType::Decimal { .. })
            .then(|| vec!["precision".to_owned(), "scale".to_owned()]),
        nullable: Nullable::NullabilityNullable,
        case_sensitive: is_text,
        searchable: Searchable::Full,
        unsigned_attribute: is_number.then_some(false),
        fixed_prec_scale: false,
        auto_increment: Some(false),
        minimum_scale: None,
        maximum_scale: None,
        sql_data_type: xdbc,
        datetime_subcode: None,
        num_prec_radix: is_number.then_some(10),
        interval_precision: None,
    }
}

/// Something of the server's own that cannot be built.
pub(crate) fn broken(error: &impl std::fmt::Display) -> Error {
    Error::Refused(format!("internal error: {error}"))
}

/// Answers with the only catalog that there is.
pub(crate) fn catalogs(query: CommandGetCatalogs) -> Result<RecordBatch> {
    let mut builder = query.into_builder();
    builder.append(CATALOG);
    builder.build().map_err(|e| broken(&e))
}

/// Answers with the only schema that there is.
pub(crate) fn schemas(query: CommandGetDbSchemas) -> Result<RecordBatch> {
    let mut builder = query.into_builder();
    builder.append(CATALOG, SCHEMA);
    builder.build().map_err(|e| broken(&e))
}

/// The tables that the caller may see.
pub(crate) fn tables(
    query: CommandGetTables,
    snapshot: &Snapshot,
    rights: &Rights,
) -> Result<RecordBatch> {
    let mut builder = query.into_builder();
    for table in snapshot.tables().iter().filter(|t| rights.may_read(&t.name)) {
        let schema = wire_schema(&arrow_schema(&table.schema));
        builder
            .append(CATALOG, SCHEMA, &table.name, TABLE_TYPE, &schema)
            .map_err(|e| broken(&e))?;
    }
    builder.build().map_err(|e| broken(&e))
}

/// Columns of primary keys, of which tables have none; by the Flight SQL specification.
pub(crate) static PRIMARY_KEYS: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("catalog_name", ArrowType::Utf8, true),
        Field::new("db_schema_name", ArrowType::Utf8, true),
        Field::new("table_name", ArrowType::Utf8, false),
        Field::new("column_name", ArrowType::Utf8, false),
        Field::new("key_name", ArrowType::Utf8, true),
        Field::new("key_sequence", ArrowType::Int32, false),
    ]))
});

/// Columns of foreign keys, of which tables have none either.
pub(crate) static FOREIGN_KEYS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let side = |side: &str| {
        let field =
            |name: &str, nullable| Field::new(format!("{side}_{name}"), ArrowType::Utf8, nullable);
        [
            field("catalog_name", true),
            field("db_schema_name", true),
            field("table_name", false),
            field("column_name", false),
        ]
    };
    let mut fields = [side("pk"), side("fk")].concat();
    fields.push(Field::new("key_sequence", ArrowType::Int32, false));
    fields.push(Field::new("fk_key_name", ArrowType::Utf8, true));
    fields.push(Field::new("pk_key_name", ArrowType::Utf8, true));
    fields.push(Field::new("update_rule", ArrowType::UInt8, false));
    fields.push(Field::new("delete_rule", ArrowType::UInt8, false));
    Arc::new(Schema::new(fields))
});
