"""`bench/run dashboard`: one page of HTML with a chart for each case of `bench/run sources` over commits, beside rivals.

The page has its data, its style and its pictures in it: it needs no server and no network. It is drawn from the table
`sources` of the store results/store. `--check` opens it in a headless Chromium, and asks the page what it shows.
"""

import argparse
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import ROOT

RESULTS = ROOT / "bench/results"
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 560, 260, 56, 46, 14
COLORS = ["#c8442b", "#e08a3c", "#b59b2a", "#8a3a6b", "#3b6ea5", "#4d8f6f", "#6b8299", "#222222"]

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #1c1c1c; background: #fff }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin: 2.2rem 0 .2rem } h3 { font-size: .95rem; font-weight: 600; margin: .6rem 0 0 }
.charts { display: flex; flex-wrap: wrap; gap: 1rem } figure { margin: 0 } svg { max-width: 100%; height: auto }
svg text { font-size: 11px; fill: #444 } .legend span { margin-right: 1rem; white-space: nowrap } .legend i { display: inline-block;
width: .8em; height: .8em; margin-right: .35em; border-radius: 2px } p, td, th { font-size: .9rem } table { border-collapse: collapse }
td, th { padding: .15rem .7rem; text-align: right; border-bottom: 1px solid #ddd } td:first-child, th:first-child { text-align: left }
"""

# Said to whoever checks the page: what a browser made of it.
SCRIPT = """
const shown = [...document.querySelectorAll('svg.chart')].filter(one => one.getBoundingClientRect().width > 100);
document.body.dataset.charts = shown.length;
document.body.dataset.points = document.querySelectorAll('svg.chart circle').length;
document.body.dataset.fetched = performance.getEntriesByType('resource').length;
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    release = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    parser.add_argument("--coload", type=Path, default=release / "coload", help="binary that reads the store")
    parser.add_argument("--store", type=Path, default=RESULTS / "store")
    parser.add_argument("--output", type=Path, default=RESULTS / "dashboard.html")
    parser.add_argument("--check", action="store_true", help="open it in headless Chromium")
    args = parser.parse_args()
    results = read(args)
    if not results:
        sys.exit(f"{args.store} has no results: run bench/run sources first")
    page, charts, points = page_of(results)
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(page)
    print(args.output)
    if args.check:
        check(args.output, charts, points)


def read(args):
    """The rows of the table, by coload."""
    query = ("SELECT CAST(time AS VARCHAR) AS time, commit, scale, case_name, place, contender, wall, cpu, input_bytes, row_count, "
             "load_average FROM sources ORDER BY time")
    told = subprocess.run([str(args.coload), "sql", "--store", str(args.store), "-c", query, "--output", "jsonl"],
                          capture_output=True, text=True)
    if told.returncode != 0:
        sys.exit(f"{args.store}: {told.stderr.strip()}")
    return [json.loads(line) for line in told.stdout.splitlines() if line]


# --- page


def page_of(results):
    """The page, how many charts it has, and how many points these have."""
    contenders = list(dict.fromkeys(one["contender"] for one in results))
    color = {name: COLORS[number % len(COLORS)] for number, name in enumerate(contenders)}
    parts, charts, points = [], 0, 0
    for case, scale in dict.fromkeys((one["case_name"], one["scale"]) for one in results):
        of_case = [one for one in results if (one["case_name"], one["scale"]) == (case, scale)]
        last = of_case[-1]
        size = f"{last['input_bytes'] / 1e6:,.0f} MB, {last['row_count']:,} rows"
        size += "" if scale == 1 else f", {scale:g} of the seed's rows"
        parts.append(f"<h2>{html.escape(case)}</h2><p>{size}</p><div class=charts>")
        for place in dict.fromkeys(one["place"] for one in of_case):
            of = [one for one in of_case if one["place"] == place]
            parts.append(f"<figure><h3>{html.escape(place)}</h3>{chart(case, of, color)}{table(of)}</figure>")
            charts += 1
            points += len(of)
        parts.append("</div>")
    legend = "".join(f"<span><i style='background:{color[name]}'></i>{html.escape(name)}</span>" for name in contenders)
    page = (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>Coload: sources</title><style>{STYLE}</style></head><body>"
        f"<h1>Loads from files and objects</h1><p>Seconds of a load over commits, the mean of the runs that count; less is better. "
        f"Points of a busy machine are hollow.</p><p class=legend>{legend}</p>{''.join(parts)}<script>{SCRIPT}</script></body></html>\n"
    )
    return page, charts, points


def chart(case, of, color):
    """Lines of seconds over commits, one for each contender."""
    times = list(dict.fromkeys(one["time"] for one in of))
    commits = {one["time"]: one["commit"] for one in of}
    most = max(one["wall"] for one in of) * 1.1 or 1
    wide, high = WIDTH - LEFT - 12, HEIGHT - BOTTOM - TOP

    def x(time):
        return LEFT + wide * (times.index(time) + 0.5) / len(times)

    def y(wall):
        return TOP + high * (1 - wall / most)

    out = [f"<svg class=chart role=img aria-label='{html.escape(case, quote=True)}' viewBox='0 0 {WIDTH} {HEIGHT}' "
           f"width={WIDTH} height={HEIGHT}>"]
    for step in range(5):
        wall = most * step / 4
        out.append(f"<line x1={LEFT} x2={WIDTH - 12} y1={y(wall):.1f} y2={y(wall):.1f} stroke='#e3e3e3'/>"
                   f"<text x={LEFT - 6} y={y(wall) + 4:.1f} text-anchor=end>{wall:.3g} s</text>")
    every = max(1, -(-len(times) // 8))
    for number, time in enumerate(times):
        if number % every == 0:
            out.append(f"<text x={x(time):.1f} y={HEIGHT - BOTTOM + 18} text-anchor=middle>{html.escape(commits[time])}</text>"
                       f"<text x={x(time):.1f} y={HEIGHT - BOTTOM + 32} text-anchor=middle>{html.escape(time[:10])}</text>")
    for name in dict.fromkeys(one["contender"] for one in of):
        line = [one for one in of if one["contender"] == name]
        path = " ".join(f"{x(one['time']):.1f},{y(one['wall']):.1f}" for one in line)
        out.append(f"<polyline points='{path}' fill=none stroke='{color[name]}' stroke-width=2 />")
        for one in line:
            fill = "#fff" if one["load_average"] > 0.7 else color[name]
            told = html.escape(f"{name}, {one['commit']}: {one['wall']:.2f} s, CPU {one['cpu']:.2f} s")
            out.append(f"<circle cx={x(one['time']):.1f} cy={y(one['wall']):.1f} r=4 fill='{fill}' stroke='{color[name]}' "
                       f"stroke-width=2><title>{told}</title></circle>")
    return "".join(out) + "</svg>"


def table(of):
    """The newest run in numbers."""
    newest = [one for one in of if one["time"] == of[-1]["time"]]
    ours = next((one for one in newest if one["contender"] == "coload"), None)
    lines = "".join(
        f"<tr><td>{html.escape(one['contender'])}<td>{one['wall']:.2f}<td>{one['cpu']:.2f}"
        f"<td>{one['wall'] / ours['wall']:.2f}</tr>" if ours else
        f"<tr><td>{html.escape(one['contender'])}<td>{one['wall']:.2f}<td>{one['cpu']:.2f}<td></tr>"
        for one in newest
    )
    return f"<table><tr><th>newest<th>wall s<th>CPU s<th>/ coload</tr>{lines}</table>"


# --- check


def check(page, charts, points):
    """Opens the page in a headless Chromium, without a network, and compares what it shows with what was drawn."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not browser:
        sys.exit("NOT CHECKED: there is no Chromium (apt-get install chromium)")
    if outside := re.findall(r"""(?:src|href)=|https?://|@import|url\(""", page.read_text()):
        sys.exit(f"the page points to something outside of it: {outside[:3]}")
    with tempfile.TemporaryDirectory() as profile:
        # No name is resolved, so that whatever the page would fetch fails.
        told = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
             "--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom", page.resolve().as_uri()],
            capture_output=True, text=True, timeout=120,
        )
    shown = {name: int(number) for name, number in re.findall(r'data-(charts|points|fetched)="(\d+)"', told.stdout)}
    expected = {"charts": charts, "points": points, "fetched": 0}
    if told.returncode != 0 or shown != expected:
        sys.exit(f"Chromium shows {shown}, and there are {expected}: {told.stderr.strip()[-500:]}")
    print(f"checked in Chromium: {charts} charts with {points} points, nothing fetched")


if __name__ == "__main__":
    main()
