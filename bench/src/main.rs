//! `coload-bench`: makes the data of the laboratory.

#[cfg(feature = "sql")]
mod answers;
mod blocks;
mod cache;
mod decompress;
mod fact;
#[cfg(feature = "sql")]
mod keys;
mod micro;
#[cfg(feature = "sql")]
mod queries;
mod shapes;
mod tpch;
mod warehouse;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Makes the data of the laboratory; bench/README.md tells the rest.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Writes a data set and its schema, and prints the path of the data
    #[command(subcommand)]
    Generate(DataSet),
    /// Measures the steps of a load on the first 64 MiB of a `|`-delimited file
    Micro {
        /// File whose first 64 MiB are used
        file: PathBuf,
        /// File with its CREATE TABLE
        #[arg(long)]
        schema: PathBuf,
        /// Runs of each step; the least counts
        #[arg(long, default_value_t = 20)]
        repeat: usize,
    },
    /// Times decompression of a file, and prints a line of JSON a run
    Decompress {
        /// The compressed file
        file: PathBuf,
        /// The engine that decompresses it
        #[arg(long, default_value = "coload")]
        engine: decompress::Engine,
        /// Threads that decompress at once
        #[arg(long, default_value_t = 1)]
        threads: usize,
        /// Runs, one line of JSON each
        #[arg(long, default_value_t = 1)]
        repeat: usize,
    },
    /// Times queries on a store, and prints medians and answers as JSON
    #[cfg(feature = "sql")]
    Queries {
        /// Directory of the store
        #[arg(long)]
        store: PathBuf,
        /// A query as NAME=SQL
        #[arg(long = "query", required = true)]
        queries: Vec<String>,
        /// Calls of each query
        #[arg(long, default_value_t = 50)]
        repeat: usize,
        /// Threads of a query
        #[arg(long, default_value_t = 2)]
        threads: usize,
    },
    /// Times look-ups of rows by key in a store, and prints medians as JSON
    #[cfg(feature = "sql")]
    Keys {
        /// Directory of the store
        #[arg(long)]
        store: PathBuf,
        /// Name of the table
        #[arg(long)]
        table: String,
        /// File with a key a line, whole numbers with bars between
        #[arg(long)]
        keys: PathBuf,
    },
    /// Answers statements of standard input on a store: a JSON text a line, a JSON object a line
    #[cfg(feature = "sql")]
    Answers {
        /// The store, made if it is not there
        #[arg(long)]
        store: PathBuf,
        /// Threads of a statement
        #[arg(long, default_value_t = 2)]
        threads: usize,
    },
    /// Prints the CREATE TABLE of a table
    Schema {
        /// warehouse, fact or a TPC-H table
        table: String,
    },
    /// Prints the names of the tables of one kind of column
    Shapes,
}

#[derive(Subcommand)]
enum DataSet {
    /// TPC-H lineitem, one file
    Lineitem {
        /// TPC-H scale factor; 1 is 6 million rows and 760 MB
        #[arg(long)]
        scale: f64,
        #[command(flatten)]
        place: Place,
    },
    /// A table of 155 columns, as a data warehouse has
    Warehouse {
        /// Number of rows; a million are 1.3 GB
        #[arg(long)]
        rows: u64,
        #[command(flatten)]
        place: Place,
    },
    /// A table of 155 columns whose values are independent, as a shuffled fact table has
    Fact {
        /// Number of rows; a million are 1.5 GB
        #[arg(long, default_value_t = 1_000_000)]
        rows: u64,
        #[command(flatten)]
        place: Place,
    },
    /// A table of one kind of column; `coload-bench shapes` prints their names
    Shape {
        /// Name of the shape
        name: String,
        /// Number of rows; those of about 100 MB without it
        #[arg(long)]
        rows: Option<u64>,
        #[command(flatten)]
        place: Place,
    },
    /// The eight TPC-H tables, into one directory
    Tpch {
        /// TPC-H scale factor; 1 is 6 million rows of lineitem
        #[arg(long)]
        scale: f64,
        /// Directory to write to
        #[arg(long)]
        out: PathBuf,
    },
}

/// Where a file goes.
#[derive(clap::Args)]
struct Place {
    /// File to write; without it the file goes to the cache, unless it is there already
    #[arg(long)]
    out: Option<PathBuf>,
    /// Directory of the cache
    #[arg(long, default_value = "bench/cache")]
    cache: PathBuf,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Generate(data_set) => {
            generate(data_set).and_then(|path| print(&path.display().to_string()))
        }
        Command::Micro { file, schema, repeat } => micro(&file, &schema, repeat),
        Command::Decompress { file, engine, threads, repeat } => (0..repeat).try_for_each(|_| {
            let decompress::Measured { wall, cpu, bytes } =
                decompress::run(&file, engine, threads)?;
            print(&format!("{{\"wall\": {wall}, \"cpu\": {cpu}, \"bytes\": {bytes}}}"))
        }),
        #[cfg(feature = "sql")]
        Command::Queries { store, queries, repeat, threads } => {
            queries::run(&store, &queries, repeat, threads)
                .map_err(io::Error::other)
                .and_then(|json| print(&json))
        }
        #[cfg(feature = "sql")]
        Command::Keys { store, table, keys } => {
            keys::run(&store, &table, &keys).map_err(io::Error::other).and_then(|json| print(&json))
        }
        #[cfg(feature = "sql")]
        Command::Answers { store, threads } => {
            let (input, out) = (io::stdin().lock(), io::stdout().lock());
            answers::run(&store, threads, input, out).map_err(io::Error::other)
        }
        Command::Schema { table } => schema(&table).and_then(|text| print(&text)),
        Command::Shapes => shapes::SHAPES.iter().try_for_each(|shape| print(shape.name)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            // Nothing is left to do when standard error is closed too.
            let _ = writeln!(io::stderr(), "coload-bench: {e}");
            ExitCode::FAILURE
        }
    }
}

/// The allocator of the binary that is measured elsewhere.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn micro(file: &Path, schema: &Path, repeat: usize) -> io::Result<()> {
    print("| step | ms | MB/s | ns a field |\n|---|---|---|---|")?;
    for step in micro::run(file, schema, repeat).map_err(io::Error::other)? {
        print(&format!(
            "| {} | {:.2} | {:.0} | {:.2} |",
            step.name,
            step.seconds * 1e3,
            step.bytes as f64 / step.seconds / 1e6,
            step.seconds * 1e9 / step.fields as f64
        ))?;
    }
    Ok(())
}

fn generate(data_set: DataSet) -> io::Result<PathBuf> {
    match data_set {
        DataSet::Lineitem { scale, place } => place.file(
            &format!("lineitem-sf{scale}"),
            tpch::VERSION,
            &schema("lineitem")?,
            |path| tpch::generate("lineitem", scale, path),
        ),
        DataSet::Warehouse { rows, place } => place.file(
            &format!("warehouse-{rows}"),
            warehouse::VERSION,
            &warehouse::schema(),
            |path| warehouse::generate(rows, path),
        ),
        DataSet::Fact { rows, place } => {
            place.file(&format!("fact-{rows}"), fact::VERSION, &fact::schema(), |path| {
                fact::generate(rows, path)
            })
        }
        DataSet::Shape { name, rows, place } => {
            let shape = shapes::Shape::of_name(&name).ok_or_else(|| {
                invalid(format!("no shape \"{name}\"; try `coload-bench shapes`"))
            })?;
            let rows = rows.unwrap_or(shape.rows);
            place.file(&format!("shape-{name}-{rows}"), shapes::VERSION, &shape.schema(), |path| {
                shape.generate(rows, path)
            })
        }
        DataSet::Tpch { scale, out } => {
            std::fs::create_dir_all(&out)?;
            for table in tpch::TABLES {
                let path = out.join(table).with_extension("tbl");
                tpch::generate(table, scale, &path)?;
                cache::write_schema(&path, &schema(table)?)?;
            }
            Ok(out)
        }
    }
}

impl Place {
    fn file(
        self,
        stem: &str,
        version: &str,
        schema: &str,
        generate: impl FnOnce(&Path) -> io::Result<()>,
    ) -> io::Result<PathBuf> {
        let Some(path) = self.out else {
            return cache::file(&self.cache, stem, version, schema, generate);
        };
        generate(&path)?;
        cache::write_schema(&path, schema)?;
        Ok(path)
    }
}

fn schema(table: &str) -> io::Result<String> {
    match table {
        "warehouse" => return Ok(warehouse::schema()),
        "fact" => return Ok(fact::schema()),
        _ => {}
    }
    tpch::schema(table).map(str::to_owned).ok_or_else(|| {
        let tables = tpch::TABLES.join(", ");
        invalid(format!("no table \"{table}\"; the tables are warehouse, fact, {tables}"))
    })
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

fn print(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{}", text.trim_end())
}
