"""`bench/run answers`: Coload's answers against DuckDB's, and against its own.

First the 22 queries of TPC-H and queries in the manner of ClickBench on data that `coload-bench` makes, then statements at
random over tables of values at the edges of their types. Everything comes from one seed.
"""

import argparse
import collections
import pathlib
import random
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import fixed  # noqa: E402
from compare import same, same_rows  # noqa: E402
from engines import Coload, Duck, Failure  # noqa: E402
from statements import Check, Statements  # noqa: E402
from tables import Table  # noqa: E402

TABLES = 3
STATEMENTS_A_ROUND = 250


class Tally:
    """What came of the statements."""

    def __init__(self, out):
        self.kinds = collections.Counter()
        self.reasons = collections.Counter()
        self.by_statement = collections.Counter()
        self.out = out

    def reason(self, failure):
        text = re.sub(r"'[^']*'|\"[^\"]*\"|[-+]?\d[\d.:eE+-]*", "..", failure.text)
        self.reasons[" ".join(text.split()[:7])] += 1

    def note(self, kind, name):
        self.kinds[kind] += 1
        self.by_statement[name, kind] += 1

    def bad(self, kind, name, tables, texts, answers):
        """Writes what is needed to see it again."""
        self.note(kind, name)
        lines = [f"-- {kind}: {name}"]
        for table in tables:
            if any(re.search(rf"\b{table.name}\b", text) for text in texts):
                lines += [statement + ";" for statement in table.statements()]
        for text, answer in zip(texts, answers):
            lines += ["", text + ";", "-- " + repr(answer).replace("\n", "\n-- ")]
        print("\n".join(lines) + "\n", file=self.out, flush=True)


def compare_pair(tally, name, pair, coload, duck, tables):
    ours = coload.ask(pair[0])
    if isinstance(ours, Failure) and ours.kind in ("panic", "slow") or is_internal(ours):
        return tally.bad("panic" if ours.kind != "slow" else "slow", name, tables, pair[:1], [ours])
    if isinstance(ours, Failure):
        tally.reason(ours)
        return tally.note("refused", name)
    theirs = duck.ask(pair[1])
    if isinstance(theirs, Failure):
        return tally.note("refused by DuckDB only", name)
    if same(ours, theirs):
        return tally.note("same", name)
    return tally.bad("wrong", name, tables, pair, [ours, theirs])


def is_internal(answer):
    return isinstance(answer, Failure) and "internal error" in answer.text


def compare_check(tally, name, check, coload, tables):
    answers = [coload.ask(check.one), coload.ask(check.other)]
    texts = [check.one, check.other]
    for answer in answers:
        if isinstance(answer, Failure):
            if answer.kind in ("panic", "slow") or is_internal(answer):
                kind = "slow" if answer.kind == "slow" else "panic"
                return tally.bad(kind, name, tables, texts, answers)
            tally.reason(answer)
            return tally.note("refused", name)
    if same_rows(*answers):
        return tally.note("same", name)
    return tally.bad("wrong", name, tables, texts, answers)


def round_of(tally, generator, count, coload, duck):
    tables = [Table(generator, f"t{i}") for i in range(TABLES)]
    for table in tables:
        coload.ask(f"DROP TABLE IF EXISTS {table.name}")
        duck.ask(f"DROP TABLE IF EXISTS {table.name}")
        for statement in table.statements():
            for engine in (coload, duck):
                answer = engine.ask(statement)
                if isinstance(answer, Failure):
                    raise SystemExit(f"{statement}\n{answer}")
    statements = Statements(generator, tables)
    for _ in range(count):
        name, made = statements.next()
        if isinstance(made, Check):
            compare_check(tally, name, made, coload, tables)
        else:
            compare_pair(tally, name, made, coload, duck, tables)


def report(tally, seconds, arguments):
    total = sum(tally.kinds.values())
    print(f"{total} statements in {seconds:.0f} s, seed {arguments.seed}\n")
    print("| came of it | statements |\n|---|---|")
    for kind, count in tally.kinds.most_common():
        print(f"| {kind} | {count} |")
    print("\n| refused because | statements |\n|---|---|")
    for reason, count in tally.reasons.most_common(25):
        print(f"| {reason} | {count} |")


def main():
    parser = argparse.ArgumentParser(prog="bench/run answers", description=__doc__)
    parser.add_argument("--bin", required=True, help="folder of coload and coload-bench")
    parser.add_argument("--statements", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--scale", type=float, default=0.01, help="of TPC-H; 0 leaves it out")
    parser.add_argument("--out", default="bench/results/answers.sql", help="what was wrong")
    arguments = parser.parse_args()
    out = pathlib.Path(arguments.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="coload-answers-"))
    start = time.monotonic()
    try:
        with out.open("w") as wrong:
            tally = Tally(wrong)
            coload = Coload(f"{arguments.bin}/coload-bench", str(folder / "store"), arguments.threads)
            duck = Duck(arguments.threads)
            if arguments.scale > 0:
                for name, pair in fixed.queries(arguments, folder, coload, duck):
                    compare_pair(tally, name, pair, coload, duck, [])
                print(f"TPC-H and ClickBench: {dict(tally.kinds)}", flush=True)
            left, number = arguments.statements, 0
            while left > 0:
                # A seed of its own for each round, so that one can be run again by itself.
                generator = random.Random(f"{arguments.seed}.{number}")
                count = min(left, STATEMENTS_A_ROUND)
                round_of(tally, generator, count, coload, duck)
                left, number = left - count, number + 1
                if number % 20 == 0:
                    print(f"{arguments.statements - left}: {dict(tally.kinds)}", file=sys.stderr)
            coload.close()
        report(tally, time.monotonic() - start, arguments)
        bad = sum(tally.kinds[k] for k in ("wrong", "panic", "slow"))
        sys.exit(1 if bad else 0)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
