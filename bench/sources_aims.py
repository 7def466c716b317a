"""What loads of files and objects must reach, as ratios within one run of `bench/run sources`."""

OURS = "coload"
LINE_BYTES_PER_SECOND = 1e9 / 8
GIGABYTE_CASES = ["many-rows", "large-rows", "many-columns", "one-file"]
# Beyond the page cache, the files and the programs themselves, what a load with --memory 512MiB may hold.
MOST_MIB = 620


def table(results, balance):
    """A line for each aim whose cases were measured: its ratio, and whether it is reached. `balance` tells plans' imbalance."""
    measured = {(one["case_name"], one["place"], one["contender"]): one for one in results if "wall" in one}

    def ratio(case, place, rival, measure="wall"):
        ours, theirs = measured.get((case, place, OURS)), measured.get((case, place, rival))
        return theirs[measure] / ours[measure] if ours and theirs else None

    def between(one, other):
        """The wall time of the first load over that of the second, each a case and a place."""
        first, second = (measured.get((*key, OURS)) for key in (one, other))
        return first["wall"] / second["wall"] if first and second else None

    lines = [
        ("lineitem as Parquet, DuckDB / coload, wall", "least", 3, ratio("lineitem", "disk", "DuckDB")),
        ("lineitem as Parquet, DuckDB / coload, CPU", "least", 3, ratio("lineitem", "disk", "DuckDB", "cpu")),
        ("lineitem as Parquet, Polars / coload, wall", "least", 1.8, ratio("lineitem", "disk", "Polars")),
        ("lineitem as lines of JSON, DuckDB / coload, wall", "least", 3, ratio("lineitem-json", "disk", "DuckDB")),
        ("small documents of JSON, DuckDB / coload, wall", "least", 4, ratio("small-json", "disk", "DuckDB")),
        *((f"{case}, DuckDB / coload, wall", "least", 2, ratio(case, "disk", "DuckDB")) for case in GIGABYTE_CASES),
        ("one file / its bytes in ten, wall", "most", 1.05, between(("one-file", "disk"), ("ten-files", "disk"))),
        ("8 files / their bytes in 200, wall", "most", 1.05, between(("few-sales", "disk"), ("sales", "disk"))),
    ]
    for case in dict.fromkeys(case for case, _, _ in measured):
        lines.append((f"{case}, s3 / disk, wall", "most", 1.3, between((case, "s3"), (case, "disk"))))
    for (case, place, contender), one in measured.items():
        if place == "s3-1gbit-20ms" and contender == OURS:
            of_line = one["input_bytes"] / one["wall"] / LINE_BYTES_PER_SECOND
            lines.append((f"{case}, share of the line of 1 Gbit/s and 20 ms", "least", 0.9, of_line))
    for case, place, contender in measured:
        if contender == f"{OURS}, 512 MiB":
            mib = measured[case, place, contender]["peak_bytes"] / (1 << 20)
            lines.append((f"{case}, {place}, MiB held with --memory 512MiB", "most", MOST_MIB, mib))
    for case, (explicit, hashed) in balance.items():
        lines.append((f"{case}, percent that a worker has over the mean, listed", "most", 5, explicit))
        # By hashes files are not cut: few files are as uneven as they are.
        if hashed is not None:
            lines.append((f"{case}, the same, hashed", "most", 10, hashed))

    text = "\n## Against the aims\n\n| | aim | measured | |\n|---|---|---:|---|\n"
    for what, side, limit, value in lines:
        if value is None:
            continue
        reached = value >= limit if side == "least" else value <= limit
        text += f"| {what} | at {side} {limit:g} | {value:.2f} | {'reached' if reached else 'missed'} |\n"
    return text
