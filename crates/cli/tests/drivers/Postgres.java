// The JDBC driver of PostgreSQL on a server of Coload, unchanged. Usage: Postgres.java HOST:PORT USER PASSWORD

import java.io.StringReader;
import java.math.BigDecimal;
import java.sql.*;
import java.time.OffsetDateTime;
import org.postgresql.copy.CopyManager;
import org.postgresql.core.BaseConnection;

public class Postgres {
    static int checks = 0;

    static void check(Object found, Object expected) {
        if (!String.valueOf(found).equals(String.valueOf(expected))) {
            throw new AssertionError(found + ", expected " + expected);
        }
        checks++;
    }

    /** The values of a column, with blanks between them. */
    static String all(ResultSet rows, String column) throws SQLException {
        StringBuilder values = new StringBuilder();
        while (rows.next()) {
            values.append(values.length() == 0 ? "" : " ").append(rows.getString(column));
        }
        return values.toString();
    }

    public static void main(String[] arguments) throws Exception {
        String url = "jdbc:postgresql://" + arguments[0] + "/coload";
        try (Connection db = DriverManager.getConnection(url, arguments[1], arguments[2])) {
            db.createStatement().executeUpdate(
                "CREATE TABLE j (i INTEGER, n DECIMAL(10,2), t VARCHAR, d DATE, ts TIMESTAMP, tz TIMESTAMP WITH TIME ZONE, ok BOOLEAN)");
            PreparedStatement insert = db.prepareStatement("INSERT INTO j VALUES (?, ?, ?, ?, ?, ?, ?)");
            insert.setInt(1, 1);
            insert.setBigDecimal(2, new BigDecimal("1.25"));
            insert.setString(3, "it's");
            insert.setDate(4, Date.valueOf("2024-02-29"));
            insert.setTimestamp(5, Timestamp.valueOf("2024-02-29 12:00:00.5"));
            insert.setObject(6, OffsetDateTime.parse("2024-02-29T12:00:00Z"));
            insert.setBoolean(7, true);
            check(insert.executeUpdate(), 1);
            // After some runs the driver asks for answers in binary.
            PreparedStatement select = db.prepareStatement("SELECT * FROM j WHERE n = ?");
            for (int run = 0; run < 10; run++) {
                select.setBigDecimal(1, new BigDecimal("1.25"));
                ResultSet row = select.executeQuery();
                check(row.next(), true);
                check(row.getInt(1) + " " + row.getBigDecimal(2) + " " + row.getString(3), "1 1.25 it's");
                check(row.getDate(4) + " " + row.getTimestamp(5), "2024-02-29 2024-02-29 12:00:00.5");
                check(row.getObject(6, OffsetDateTime.class).toInstant(), "2024-02-29T12:00:00Z");
                check(row.getBoolean(7), true);
            }
            PreparedStatement batch = db.prepareStatement("INSERT INTO j (i, t) VALUES (?, ?)");
            for (int i = 0; i < 5_000; i++) {
                batch.setInt(1, i);
                batch.setString(2, "x" + i);
                batch.addBatch();
            }
            check(batch.executeBatch().length, 5_000);
            CopyManager copy = new CopyManager((BaseConnection) db);
            check(copy.copyIn("COPY j (i, t) FROM STDIN", new StringReader("-7\ta\n-8\tb\n")), 2);
            db.setAutoCommit(false);
            Statement some = db.createStatement();
            some.setFetchSize(100);
            ResultSet rows = some.executeQuery("SELECT i FROM j");
            int count = 0;
            while (rows.next()) {
                count++;
            }
            check(count, 5_003);
            db.commit();
            db.setAutoCommit(true);
            DatabaseMetaData data = db.getMetaData();
            check(all(data.getTables(null, null, "j", new String[] {"TABLE"}), "TABLE_NAME"), "j");
            check(all(data.getColumns(null, "public", "j", "%"), "TYPE_NAME"), "int4 numeric text date timestamp timestamptz bool");
            check(all(data.getSchemas(), "TABLE_SCHEM"), "information_schema pg_catalog public");
            db.createStatement().executeUpdate("CREATE TABLE keyed (a INTEGER, b VARCHAR, c INTEGER, PRIMARY KEY (b, a))");
            check(all(data.getPrimaryKeys(null, "public", "keyed"), "COLUMN_NAME"), "b a");
            check(all(data.getPrimaryKeys(null, "public", "keyed"), "KEY_SEQ"), "1 2");
            check(all(data.getIndexInfo(null, "public", "keyed", true, true), "COLUMN_NAME"), "b a");
            check(all(data.getIndexInfo(null, "public", "j", false, true), "COLUMN_NAME"), "");
            check(all(data.getBestRowIdentifier(null, "public", "keyed", DatabaseMetaData.bestRowSession, true), "COLUMN_NAME"), "a b");
            check(all(data.getImportedKeys(null, "public", "keyed"), "FK_NAME"), "");
            check(all(data.getExportedKeys(null, "public", "keyed"), "FK_NAME"), "");
            check(all(data.getCrossReference(null, "public", "j", null, "public", "keyed"), "FK_NAME"), "");
            check(all(data.getTypeInfo(), "TYPE_NAME").contains("int4"), true);
            check(all(data.getVersionColumns(null, "public", "j"), "COLUMN_NAME"), "ctid");
            check(all(data.getCatalogs(), "TABLE_CAT"), "coload");
            check(all(data.getTableTypes(), "TABLE_TYPE").contains("VIEW"), true);
            check(all(data.getTablePrivileges(null, "public", "j"), "PRIVILEGE").contains("SELECT"), true);
            check(all(data.getColumnPrivileges(null, "public", "j", "i"), "PRIVILEGE").contains("SELECT"), true);
            check(all(data.getProcedures(null, null, "%"), "PROCEDURE_NAME"), "");
            check(all(data.getProcedureColumns(null, null, "%", "%"), "PROCEDURE_NAME"), "");
            check(all(data.getFunctions(null, null, "%"), "FUNCTION_NAME"), "");
            check(all(data.getFunctionColumns(null, null, "%", "%"), "FUNCTION_NAME"), "");
            check(all(data.getUDTs(null, null, "%", null), "TYPE_NAME"), "");
            check(all(data.getClientInfoProperties(), "NAME"), "ApplicationName");
            check(data.getSQLKeywords().contains("pivot"), true);
            check(data.getMaxColumnNameLength() > 30, true);
            Statement slow = db.createStatement();
            slow.setQueryTimeout(1);
            try {
                slow.executeQuery("SELECT count(*) FROM generate_series(1, 100000000) a, generate_series(1, 1000) b");
                check("an answer", "none");
            } catch (SQLException error) {
                check(error.getSQLState(), "57014");
            }
        }
        System.out.println(checks + " checks");
    }
}
