//! Examples in the help of commands. A test takes them through the parser of the command line.

/// Examples of `coload load`.
pub const LOAD: &str = "\
Examples:
  coload load people.csv --into store
      Find out dialect and columns, make the table people.
  coload load 'data/*.tbl.gz' --into store --schema lineitem.sql --table lineitem
      Many compressed files into one table of given types.
  coload load dirty.csv --into store --max-rejects 1% --rejects rejects.csv
      Set bad records aside instead of failing at the first.
  coload load export.csv --into store --by-name --set source=@file --where 'amount > 0'
      Fields by their names, a column that is not in the file, some of the rows.
  coload load huge.csv --into store --dry-run --sample 100MiB
      See types, rejects and size of the table before loading.
  psql -c 'COPY t TO STDOUT' | coload load - --into store --table t --delimiter tab --null '\\N'
      From another program.
  coload load lineitem.tbl --into parquet:lineitem
      Into Parquet files of a directory, for other programs.
  coload load orders.csv --into postgres://loader@db.example.com/shop --table sales.orders
      Into a table of PostgreSQL, which is made if it is not there.
  coload load lineitem.tbl --into coload://loader@db.example.com/lineitem --explain
      Into a server, and see which columns are transformed where.
";

/// Examples of `coload sniff`.
pub const SNIFF: &str = "\
Examples:
  coload sniff people.csv
      Delimiter, quotes, header, types, and why they are thought to be so.
  coload sniff people.csv --output sql
      A CREATE TABLE to edit, for load --schema.
";

/// Examples of `coload plan`.
pub const PLAN: &str = "\
Examples:
  coload plan 's3://bucket/2026/*.parquet' --workers 8
      Row groups and byte ranges for eight workers, about as many bytes each.
";

/// Examples of `coload export`.
pub const EXPORT: &str = "\
Examples:
  coload export store people --output people.csv
";

/// Examples of `coload inspect`.
pub const INSPECT: &str = "\
Examples:
  coload inspect store
      Tables, versions and loads.
  coload inspect store people
      Columns, their encodings and sizes.
";

/// Examples of `coload loads`.
pub const LOADS: &str = "\
Examples:
  coload loads --server coload://loader@db.example.com
      Loads with their state, rows, rejects and bytes.
";

/// Examples of `coload cluster`.
pub const CLUSTER: &str = "\
Examples:
  coload cluster status /shared/cluster
      From the directory that the nodes share; tells how far each has come.
  coload cluster status coload://reader@db1.example.com
      From a node: the tables that the user may know of.
  coload cluster rebalance coload://admin@db1.example.com --bandwidth 20
      Give nodes that came their share of all shards, at most 20 MB of rows a second.
  coload cluster remove coload://admin@db1.example.com coload://db3.example.com:8470
      Move the shards of db3 to the others; then it may be stopped.
";

/// Examples of `coload tune`.
pub const TUNE: &str = "\
Examples:
  coload tune postgres://loader@db.example.com/shop
      Measure the server; later loads into it use what was measured.
  coload tune mysql://loader@db.example.com/shop --method load-data,values --connections 1,4 --output shop.json
      Some of it, into a file for load --tuning.
";

/// Examples of `coload sql`.
#[cfg(feature = "sql")]
pub const SQL: &str = "\
Examples:
  coload sql --store store
      A shell, as coload store; help helps.
  coload sql --store store -c 'SELECT count(*) FROM people' --output json
      One statement.
  coload sql --store store -c 'SELECT * FROM people' -o people.parquet
      Into a file, in the form of its ending.
  coload sql --store store -f report.sql --max-rows 100
      A script; tables show their first and last rows.
  coload sql --store coload://reader@db.example.com -c 'SELECT 1'
      From a server.
  echo \"SELECT * FROM 'people.csv' LIMIT 10\" | coload sql
      A file where it is; no store is needed.
";

/// Examples of `coload serve`.
#[cfg(feature = "sql")]
pub const SERVE: &str = "\
Examples:
  coload serve --store store
      On this machine only, for everybody on it.
  coload serve --store store --listen 0.0.0.0:8470 --users users.txt --tls-certificate cert.pem --tls-key key.pem
      For others, encrypted, with the users of a file; coload hash-password makes its lines.
  coload serve --store store --external /data/public
      Statements may read the files below a directory, too.
  coload serve --store store --listen 10.0.0.1:8470 --cluster /shared/cluster --insecure
      As a node of a cluster: CREATE TABLE .. SHARD BY .. makes tables that are spread over all nodes.
";

/// Examples of `coload verify`.
pub const VERIFY: &str = "\
Examples:
  coload verify store
      Read all of it: checksums, order, ranges, codes, bounds. Others may load and query meanwhile.
  coload verify store --repair
      Set damaged files aside, in store/damaged, and go on without their rows.
  coload verify store --report json
      The same for programs.
";

/// Examples of `coload man`.
pub const MAN: &str = "\
Examples:
  coload man ~/.local/share/man/man1
      Then: man coload-load
  coload man docs/reference --form markdown
      Pages of Markdown.
";

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use crate::args::Cli;

    /// Words as a shell would make them of an example.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (i, part) in line.split('\'').enumerate() {
            match i % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        words
    }

    #[test]
    fn examples_are_understood() {
        let command = Cli::command();
        let helps = command.get_subcommands().filter_map(|command| command.get_after_help());
        let examples: Vec<String> = helps.map(ToString::to_string).collect();
        assert!(examples.len() >= 8, "{examples:?}");
        for example in examples {
            let lines: Vec<&str> =
                example.lines().filter(|l| l.starts_with("  c") || l.starts_with("  p")).collect();
            assert!(!lines.is_empty(), "{example}");
            for line in lines {
                let command = line.rsplit_once(" | ").map_or(line, |(_, last)| last);
                if let Err(error) = Cli::try_parse_from(words(command)) {
                    panic!("{line}: {error}");
                }
            }
        }
    }
}
