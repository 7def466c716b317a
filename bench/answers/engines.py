"""The two engines: statements in, rows or an error out."""

import json
import subprocess
import threading

import duckdb

# What DuckDB may take for a statement.
SECONDS_MAX = 60
MEMORY = "2GB"
ROWS_MAX = 1_000_000

# Types in which arithmetic goes further.
WIDER = {
    "SMALLINT": "HUGEINT", "INTEGER": "HUGEINT", "BIGINT": "HUGEINT", "DECIMAL(9,2)": "DECIMAL(30,2)",
    "DECIMAL(18,4)": "DECIMAL(30,4)",
}


class Failure:
    """What an engine says instead of rows: a kind and a text."""

    def __init__(self, kind, text):
        self.kind, self.text = kind, text

    def __repr__(self):
        return f"{self.kind}: {self.text}"


class Rows:
    """Rows as tuples; `types` are the engine's names of the columns' types, where it tells them."""

    def __init__(self, rows, types=()):
        self.rows, self.types = rows, types

    def __repr__(self):
        return "\n".join(str(row) for row in self.rows) or "(no rows)"


class Coload:
    """`coload-bench answers` on a store, started again if it dies."""

    def __init__(self, binary, store, threads):
        self.command = [binary, "answers", "--store", store, "--threads", str(threads)]
        self.start()

    def start(self):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            self.command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, sql):
        self.send(sql)
        return self.receive()

    def send(self, sql):
        """Begins a statement; the other engine can have its turn meanwhile."""
        try:
            self.process.stdin.write(json.dumps(sql) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            # The answer says so.
            pass

    def receive(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            code = self.process.returncode
            self.start()
            return Failure("panic", f"the process ended with {code}")
        answer = json.loads(line)
        if "error" in answer:
            return Failure(answer["error"], answer["text"])
        return Rows([tuple(row) for row in answer["rows"]], answer["types"])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Duck:
    """DuckDB in this process. A statement that takes too long, or answers too many rows, is one that it refuses."""

    def __init__(self, threads):
        self.connection = duckdb.connect(config={"threads": threads, "memory_limit": MEMORY})

    def ask(self, sql):
        end = threading.Timer(SECONDS_MAX, self.connection.interrupt)
        end.start()
        try:
            result = self.connection.execute(sql)
            types = [str(column[1]) for column in result.description or []]
            rows = result.fetchmany(ROWS_MAX + 1) if types else []
            return Failure("limit", f"more than {ROWS_MAX} rows") if len(rows) > ROWS_MAX else Rows(rows, types)
        except (duckdb.Error, OverflowError, ValueError) as error:
            return Failure(type(error).__name__, str(error))
        finally:
            end.cancel()

    def drop(self, table):
        self.ask(f"DROP TABLE IF EXISTS {table.name}")
        self.ask("CREATE SCHEMA IF NOT EXISTS wide")
        self.ask(f"DROP TABLE IF EXISTS wide.{table.name}")

    def widen(self, table):
        """The same rows in types that hold more: literals are BIGINT in Coload and INTEGER here, decimals grow there."""
        columns = ", ".join(f"CAST({name} AS {WIDER.get(kind, kind)}) AS {name}" for name, kind in table.columns)
        self.ask(f"CREATE TABLE wide.{table.name} AS SELECT {columns} FROM {table.name}")

    def ask_plainly(self, sql):
        """Without the optimizer: it gives some statements another answer than the engine without it does."""
        self.ask("PRAGMA disable_optimizer")
        answer = self.ask(sql)
        self.ask("PRAGMA enable_optimizer")
        return answer

    def ask_wide(self, sql):
        self.ask("USE wide")
        answer = self.ask(sql)
        self.ask("USE main")
        return answer
