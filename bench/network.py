"""Loads over an emulated network: `bench/run network lineitem-sf1`; see README.md.

Client and server are processes in two network namespaces joined by a veth pair whose ends are shaped by `tc tbf`. Each is
pinned to a core of its own. Figures 3 and 4 of seed 000 (loading in isolation), at 100 Mbit/s, 1 Gbit/s and 10 Gbit/s;
with `--wire`, the table of seed 001 (compression on the wire, the server discarding what it has verified).

Needs root, and `ip` and `tc`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
import picture
from machine import ROOT

BENCH = ROOT / "bench"
RESULTS = BENCH / "results"
CLIENT, SERVER = "coload-client", "coload-server"
ADDRESS, PORT = "10.99.0.2", 8470
# Bytes that may go out at once. The 10 Gbit/s of a virtual pair need more than a timer tick of them.
BURST = {"100mbit": "128kb", "1gbit": "512kb", "10gbit": "4mb"}
PLACEMENTS = ["adaptive", "all", "size", "none", "pipe", "seq"]
# Of the paper's configurations these send plain bytes; compressing them is what `--wire` measures.
PLAIN = ["none", "pipe", "seq"]
COMPRESSIONS = ["none", "adaptive", "lz4", "zstd"]
SERVER_SECONDS_MAX = 30


def main():
    parser = argparse.ArgumentParser(description="Loads over an emulated network.")
    parser.add_argument("data", help="name of a data set, such as lineitem-sf1")
    parser.add_argument("--bin", type=Path, default=ROOT / "target/release", help="folder of coload and coload-receive")
    parser.add_argument("--rates", default="100mbit,1gbit,10gbit")
    parser.add_argument("--placements", default=",".join(PLACEMENTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--wire", action="store_true", help="compression on the wire instead of placements")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("network namespaces need root")
    file, schema = find(args.data)
    settings = COMPRESSIONS if args.wire else args.placements.split(",")
    runs = []
    try:
        make_network()
        for rate in args.rates.split(","):
            shape(rate)
            for number in range(args.rounds):
                for setting in settings:
                    run = load_once(args, file, schema, rate, setting)
                    runs.append({"rate": rate, "setting": setting, "round": number, **run})
                    say(f"{rate} {setting}: {run['wall_s']:.2f} s")
    finally:
        remove_network()
    report(args, runs, settings, file.stat().st_size)


def find(data):
    found = sorted((BENCH / "cache").glob(f"{data}-*.tbl"))
    if not found:
        sys.exit(f"no {data} in bench/cache: make it with bench/run data {data}")
    return found[0], found[0].with_suffix(".sql")


# --- the network


def ip(*arguments, namespace=None):
    command = ["ip", "netns", "exec", namespace] if namespace else []
    subprocess.run([*command, *arguments], check=True)


def make_network():
    remove_network()
    for namespace in (CLIENT, SERVER):
        ip("ip", "netns", "add", namespace)
    ip("ip", "link", "add", "cl0", "netns", CLIENT, "type", "veth", "peer", "name", "sv0", "netns", SERVER)
    for namespace, link, address in ((CLIENT, "cl0", "10.99.0.1"), (SERVER, "sv0", ADDRESS)):
        ip("ip", "address", "add", f"{address}/24", "dev", link, namespace=namespace)
        ip("ip", "link", "set", link, "up", namespace=namespace)
        ip("ip", "link", "set", "lo", "up", namespace=namespace)


def remove_network():
    for namespace in (CLIENT, SERVER):
        subprocess.run(["ip", "netns", "delete", namespace], stderr=subprocess.DEVNULL)


def shape(rate):
    for namespace, link in ((CLIENT, "cl0"), (SERVER, "sv0")):
        ip("tc", "qdisc", "replace", "dev", link, "root", "tbf", "rate", rate, "burst", BURST[rate], "latency", "50ms",
           namespace=namespace)


def sent_bytes():
    """Bytes that left the client's end, headers of all layers included."""
    text = subprocess.run(["ip", "netns", "exec", CLIENT, "cat", "/sys/class/net/cl0/statistics/tx_bytes"],
                          capture_output=True, text=True)
    if text.returncode != 0:
        text = subprocess.run(["ip", "netns", "exec", CLIENT, "ip", "-s", "-j", "link", "show", "cl0"],
                              capture_output=True, text=True, check=True)
        return json.loads(text.stdout)[0]["stats64"]["tx"]["bytes"]
    return int(text.stdout)


# --- one load


def load_once(args, file, schema, rate, setting):
    machine.warm_page_cache(file)
    with tempfile.TemporaryDirectory(dir=BENCH / "cache", prefix="scratch-network-") as folder:
        server = start_server(args, Path(folder) / "store")
        try:
            before = sent_bytes()
            flags = ["--placement", "none", "--wire-compression", setting] if args.wire else ["--placement", setting, *(["--wire-compression", "none"] if setting in PLAIN else [])]
            command = ["taskset", "-c", "0", args.bin / "coload", "load", file, "--schema", schema, "--no-header",
                       "--into", f"coload://{ADDRESS}:{PORT}/t", "--threads", "1", "--report", "json", *flags]
            done = subprocess.run(["ip", "netns", "exec", CLIENT, *command], capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{rate} {setting}: {done.stderr}")
            told = json.loads(done.stdout)
            run = {
                "wall_s": told["wall_s"],
                "client_cpu_s": told["cpu_s"],
                "server_cpu_s": cpu_seconds(server.pid),
                "wire_bytes": sent_bytes() - before,
                "rows": told["rows"],
                "bytes_read": told["bytes_read"],
                "frames": told["frames"],
                "frames_compressed": told["frames_compressed"],
                "client_peak_bytes": told["peak_memory_bytes"],
                "server_peak_bytes": told["server_peak_memory_bytes"],
                "columns_client": sum(c["placed"] == "client" for c in told["columns"]),
                "columns": len(told["columns"]),
                "changes": told["changes"],
            }
        finally:
            server.kill()
            server.wait()
    os.sync()
    return run


def start_server(args, store):
    command = ["taskset", "-c", "1", args.bin / "coload-receive", store, "--listen", f"{ADDRESS}:{PORT}", "--load-cpu", "1"]
    if args.wire:
        command.append("--discard")
    server = subprocess.Popen(["ip", "netns", "exec", SERVER, *command], stdout=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    if not line.startswith("listening on"):
        sys.exit(f"the server does not start: {line}")
    return server


def cpu_seconds(pid):
    """User and system time of a process; `ip netns exec` becomes what it starts."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- output


def report(args, runs, settings, size):
    rows = {run["rows"] for run in runs}
    if len(rows) != 1:
        sys.exit(f"loads of the same file have different rows: {rows}")
    medians = {}
    for run in runs:
        medians.setdefault((run["rate"], run["setting"]), []).append(run)
    measures = ["wall_s", "client_cpu_s", "server_cpu_s", "wire_bytes", "frames", "frames_compressed", "columns_client"]
    medians = {key: {m: statistics.median(r[m] for r in group) for m in measures} for key, group in medians.items()}
    what = "wire compression" if args.wire else "placement"
    print(f"## {args.data} over a network: {what}\n")
    print(f"One core each, medians of {args.rounds}; wire bytes as the interface counts them.\n")
    print(f"| network | {what} | MB/s | wall s | client CPU s | server CPU s | wire, of input | frames compressed | columns on client |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (rate, setting), m in medians.items():
        share = 100 * m["frames_compressed"] / max(m["frames"], 1)
        print(f"| {rate} | {setting} | {size / 1e6 / m['wall_s']:.0f} | {m['wall_s']:.2f} | {m['client_cpu_s']:.2f} | "
              f"{m['server_cpu_s']:.2f} | {100 * m['wire_bytes'] / size:.1f} % | {share:.0f} % | {m['columns_client']:.0f} |")
    print()
    targets(args, medians, settings, size)
    RESULTS.mkdir(exist_ok=True)
    name = "wire" if args.wire else "network"
    line = {"command": name, "data": args.data, "rounds": args.rounds, **machine.describe(), "runs": runs}
    with open(RESULTS / f"{name}.jsonl", "a") as out:
        out.write(json.dumps(line) + "\n")
    draw(args, name, medians, size)


def targets(args, medians, settings, size):
    """The lines of what must be reached that this run can tell."""
    warehouse = args.data.startswith("warehouse")
    def line(text, ratio, limit, good):
        print(f"- {text}: {ratio:.2f}, wanted {limit}: {'reached' if good else 'NOT reached'}")
    def get(rate, setting):
        return medians.get((rate, setting))
    rates = list(dict.fromkeys(rate for rate, _ in medians))
    if args.wire:
        for rate in rates:
            plain, adaptive = get(rate, "none"), get(rate, "adaptive")
            ratio = plain["wire_bytes"] / adaptive["wire_bytes"]
            speed = plain["wall_s"] / adaptive["wall_s"]
            print(f"- {rate}: compressed {ratio:.2f} times, {speed:.2f} times as fast")
        return
    for rate in rates:
        best = min((m["wall_s"] for (r, s), m in medians.items() if r == rate and s != "adaptive"), default=None)
        if best and get(rate, "adaptive"):
            ratio = get(rate, "adaptive")["wall_s"] / best
            line(f"{rate}, wall of adaptive / best fixed", ratio, "<= 1.1", ratio <= 1.1)
    if any(s == "size" for _, s in medians):
        share = next(m["wire_bytes"] for (_, s), m in medians.items() if s == "size") / size
        limit = 0.18 if warehouse else 0.30
        line("wire bytes of size / input", share, f"<= {limit}", share <= limit)
    if get("1gbit", "adaptive") and get("1gbit", "pipe"):
        ratio = get("1gbit", "pipe")["wall_s"] / get("1gbit", "adaptive")["wall_s"]
        limit = 3.5 if warehouse else 2.5
        line("1gbit, throughput of adaptive / pipe", ratio, f">= {limit}", ratio >= limit)
    for rate in rates:
        if get(rate, "all") and get(rate, "pipe"):
            ratio = get(rate, "all")["server_cpu_s"] / get(rate, "pipe")["server_cpu_s"]
            limit = 0.2 if warehouse else 0.25
            line(f"{rate}, server CPU of all / pipe", ratio, f"<= {limit}", ratio <= limit)


def draw(args, name, medians, size):
    labels = [f"{rate} {setting}" for rate, setting in medians]
    panels = [
        ("MB/s", [size / 1e6 / m["wall_s"] for m in medians.values()]),
        ("client CPU s", [m["client_cpu_s"] for m in medians.values()]),
        ("server CPU s", [m["server_cpu_s"] for m in medians.values()]),
        ("wire, % of input", [100 * m["wire_bytes"] / size for m in medians.values()]),
    ]
    path = RESULTS / f"{name}-{args.data}.png"
    try:
        picture.bars(path, f"{args.data} over a network", labels, panels, "adaptive")
        print(f"\npicture: {path.relative_to(ROOT)}")
    except ImportError:
        say("no picture: matplotlib is not installed")


def say(text):
    print(f"# {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
