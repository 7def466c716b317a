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
from compare import difference, difference_of_rows  # noqa: E402
from engines import Coload, Duck, Failure  # noqa: E402
from checks import Check  # noqa: E402
from statements import Statements  # noqa: E402
from tables import Table  # noqa: E402

TABLES = 3
REASONS = 40
STATEMENTS_A_ROUND = 250


# What no statement may answer: faults of the engine or of a rule, whatever they call themselves.
INTERNAL = re.compile(
    r"internal error|panick|optimizer rule|column types must match|failed to downcast|schema error|likely caused by a bug"
    r"|physical input schema|invalid argument error|not yet implemented|unreachable|assertion",
    re.IGNORECASE,
)
BAD = ("wrong", "panic", "internal", "slow")


class Tally:
    """What came of the statements."""

    def __init__(self, out):
        self.kinds = collections.Counter()
        self.reasons = collections.Counter()
        self.duck_reasons = collections.Counter()
        self.by_statement = collections.Counter()
        self.examples = {}
        self.out = out

    @staticmethod
    def shortened(failure):
        text = re.sub(r"'[^']*'|\"[^\"]*\"|[-+]?\d[\d.:eE+-]*", "..", failure.text)
        return " ".join(text.split()[:8])

    def refused(self, name, failure, text):
        reason = self.shortened(failure)
        self.reasons[reason] += 1
        # The shortest statement says most.
        known = self.examples.get(reason)
        if known is None or len(text) < len(known):
            self.examples[reason] = text
        self.note("refused", name)

    def refused_by_duck(self, name, failure):
        self.duck_reasons[f"{failure.kind}: {self.shortened(failure)}"] += 1
        self.note("refused by DuckDB only", name)

    def note(self, kind, name):
        self.kinds[kind] += 1
        self.by_statement[name, kind] += 1

    def bad(self, kind, name, tables, texts, answers, what=""):
        """Writes what is needed to see it again."""
        self.note(kind, name)
        lines = [f"-- {kind}: {name} {what}"]
        for table in tables:
            if any(re.search(rf"\b{table.name}\b", text) for text in texts):
                lines += [statement + ";" for statement in table.statements()]
        for text, answer in zip(texts, answers):
            lines += ["", text + ";", "-- " + repr(answer).replace("\n", "\n-- ")]
        print("\n".join(lines) + "\n", file=self.out, flush=True)


def fault_of(answer):
    """The kind of an answer that there must not be."""
    if not isinstance(answer, Failure):
        return None
    if answer.kind in ("panic", "slow"):
        return answer.kind
    return "internal" if INTERNAL.search(answer.text) else None


def compare_pair(tally, name, pair, coload, duck, tables):
    coload.send(pair[0])
    theirs = duck.ask(pair[1])
    ours = coload.receive()
    if fault := fault_of(ours):
        return tally.bad(fault, name, tables, pair[:1], [ours])
    if isinstance(ours, Failure):
        return tally.refused(name, ours, pair[0])
    if isinstance(theirs, Failure):
        # Perhaps a number did not fit its type there: with wider ones there may be an answer.
        wider = duck.ask_wide(pair[1]) if theirs.kind == "OutOfRangeException" else theirs
        if isinstance(wider, Failure):
            return tally.refused_by_duck(name, theirs)
        what = difference(ours, wider, pair)
        if what is None:
            return tally.note("same", name)
        # Decimals of 38 digits lose some after the point there, so that it is for a reader to say who is right.
        return tally.bad("unsure", name, tables, pair, [ours, theirs, wider], what)
    what = difference(ours, theirs, pair)
    if what is None:
        return tally.note("same", name)
    plain = duck.ask_plainly(pair[1])
    if not isinstance(plain, Failure) and difference(ours, plain, pair) is None:
        # DuckDB contradicts itself. It is written down, as a reader may find that the first answer was right.
        return tally.bad("as DuckDB without its optimizer", name, tables, pair, [ours, theirs], what)
    return tally.bad("wrong", name, tables, pair, [ours, theirs], what)


def compare_check(tally, name, check, coload, tables):
    answers = [coload.ask(check.one), coload.ask(check.other)]
    texts = [check.one, check.other]
    for answer in answers:
        if fault := fault_of(answer):
            return tally.bad(fault, name, tables, texts, answers)
    for text, answer in zip(texts, answers):
        if isinstance(answer, Failure):
            return tally.refused(name, answer, text)
    what = difference_of_rows(*answers)
    if what is None:
        return tally.note("same", name)
    return tally.bad("wrong", name, tables, texts, answers, what)


def round_of(tally, generator, count, coload, duck, only=None):
    tables = [Table(generator, f"t{i}") for i in range(TABLES)]
    for table in tables:
        coload.ask(f"DROP TABLE IF EXISTS {table.name}")
        duck.drop(table)
        for statement in table.statements():
            for engine in (coload, duck):
                answer = engine.ask(statement)
                if isinstance(answer, Failure):
                    raise SystemExit(f"{statement}\n{answer}")
        duck.widen(table)
    statements = Statements(generator, tables, only)
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
    for reason, count in tally.reasons.most_common(REASONS):
        print(f"| {reason} | {count} |")
    print("\n| refused by DuckDB because | statements |\n|---|---|")
    for reason, count in tally.duck_reasons.most_common(REASONS):
        print(f"| {reason} | {count} |")


def write_examples(tally, out):
    """A statement for each reason for which some were refused."""
    lines = [f"-- {count} times: {reason}\n{tally.examples[reason]};\n" for reason, count in tally.reasons.most_common()]
    out.with_suffix(".refused.sql").write_text("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(prog="bench/run answers", description=__doc__)
    parser.add_argument("--bin", required=True, help="folder of coload and coload-bench")
    parser.add_argument("--statements", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--scale", type=float, default=0.01, help="of TPC-H; 0 leaves it out")
    parser.add_argument("--only", help="names of kinds of statements, as `correlated` or `tlp`, with commas")
    parser.add_argument("--out", help="what was wrong [default: bench/results/answers-SEED.sql]")
    arguments = parser.parse_args()
    # One file for each seed: two processes at once keep what each found.
    out = pathlib.Path(arguments.out or f"bench/results/answers-{arguments.seed}.sql")
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
                round_of(tally, generator, count, coload, duck, arguments.only)
                left, number = left - count, number + 1
                if number % 20 == 0:
                    print(f"{arguments.statements - left}: {dict(tally.kinds)}", file=sys.stderr)
            coload.close()
        report(tally, time.monotonic() - start, arguments)
        write_examples(tally, out)
        bad = sum(tally.kinds[k] for k in BAD)
        sys.exit(1 if bad else 0)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
