import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** What a user of the Flight SQL JDBC driver does, against a server: Jdbc HOST:PORT [USER PASSWORD]. */
public class Jdbc {
    static int checks = 0;

    static void same(Object wanted, Object found) {
        checks++;
        if (!wanted.equals(found)) {
            throw new AssertionError("expected " + wanted + ", found " + found);
        }
    }

    static List<String> rows(ResultSet result) throws SQLException {
        List<String> rows = new ArrayList<>();
        int columns = result.getMetaData().getColumnCount();
        while (result.next()) {
            StringBuilder row = new StringBuilder();
            for (int column = 1; column <= columns; column++) {
                row.append(column > 1 ? "," : "").append(result.getObject(column));
            }
            rows.add(row.toString());
        }
        return rows;
    }

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("useEncryption", "false");
        if (args.length > 1) {
            properties.put("user", args[1]);
            properties.put("password", args[2]);
        }
        String url = "jdbc:arrow-flight-sql://" + args[0];
        try (Connection connection = DriverManager.getConnection(url, properties)) {
            statements(connection);
            batches(connection);
            parameters(connection);
            metadata(connection);
            errors(connection);
        }
        System.out.println(checks + " checks");
    }

    static void statements(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            same(List.of("1,x"), rows(statement.executeQuery("SELECT 1 AS one, 'x' AS letter")));
            statement.executeUpdate("CREATE TABLE j (id BIGINT NOT NULL, name VARCHAR, price DECIMAL(10,2), day DATE, ok BOOLEAN)");
            same(1, statement.executeUpdate("INSERT INTO j VALUES (1, 'one', 1.10, DATE '2024-01-01', true)"));
            same(List.of("1,one,1.10,2024-01-01,true"), rows(statement.executeQuery("SELECT * FROM j")));
        }
    }

    static void batches(Connection connection) throws SQLException {
        String insert = "INSERT INTO j VALUES (?, ?, ?, ?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            for (int id = 2; id <= 1001; id++) {
                statement.setLong(1, id);
                statement.setString(2, id % 10 == 0 ? null : "name " + id % 7);
                statement.setBigDecimal(3, new BigDecimal(id).movePointLeft(2));
                statement.setDate(4, Date.valueOf("2024-02-0" + (1 + id % 9)));
                statement.setBoolean(5, id % 2 == 0);
                statement.addBatch();
            }
            int written = 0;
            for (int count : statement.executeBatch()) {
                written += count;
            }
            same(1000, written);
        }
        try (Statement statement = connection.createStatement()) {
            String sums = "SELECT count(*), sum(id), count(name), sum(price) FROM j WHERE id > 1";
            same(List.of("1000,501500,900,5015.00"), rows(statement.executeQuery(sums)));
        }
    }

    static void parameters(Connection connection) throws SQLException {
        String query = "SELECT id FROM j WHERE price < ? AND ok = ? ORDER BY id";
        try (PreparedStatement statement = connection.prepareStatement(query)) {
            statement.setBigDecimal(1, new BigDecimal("0.07"));
            statement.setBoolean(2, true);
            same(List.of("2", "4", "6"), rows(statement.executeQuery()));
            statement.setBigDecimal(1, new BigDecimal("0.03"));
            statement.setBoolean(2, true);
            same(List.of("2"), rows(statement.executeQuery()));
        }
        try (PreparedStatement statement = connection.prepareStatement("SELECT name FROM j WHERE id = ?")) {
            statement.setLong(1, 1);
            same(List.of("one"), rows(statement.executeQuery()));
        }
    }

    static void metadata(Connection connection) throws SQLException {
        same("Coload", connection.getMetaData().getDatabaseProductName());
        List<String> tables = new ArrayList<>();
        try (ResultSet result = connection.getMetaData().getTables(null, null, "j", null)) {
            while (result.next()) {
                tables.add(result.getString("TABLE_SCHEM") + "." + result.getString("TABLE_NAME"));
            }
        }
        same(List.of("public.j"), tables);
        List<String> columns = new ArrayList<>();
        try (ResultSet result = connection.getMetaData().getColumns(null, null, "j", null)) {
            while (result.next()) {
                columns.add(result.getString("COLUMN_NAME"));
            }
        }
        same(List.of("id", "name", "price", "day", "ok"), columns);
    }

    static void errors(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.executeQuery("SELECT nothing FROM j");
            throw new AssertionError("no error");
        } catch (SQLException error) {
            same(true, error.getMessage().contains("nothing"));
        }
        try (Statement statement = connection.createStatement()) {
            same(List.of("2"), rows(statement.executeQuery("SELECT 2")));
        }
    }
}
