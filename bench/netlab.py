"""An emulated network: a client and a server in two network namespaces joined by a veth pair, a core for each.

The ends of the pair are shaped by `tc tbf`. What runs "at the client" is pinned to core 0, what runs "at the server" to
core 1. Half a core is a quota of the kernel's scheduler (cgroup v1 or v2), 5 ms of every 10 ms.

Needs root, `ip` and `tc`.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import machine

BENCH = machine.ROOT / "bench"
CLIENT, SERVER = "coload-client", "coload-server"
CLIENT_ADDRESS, ADDRESS, PORT = "10.99.0.1", "10.99.0.2", 8470
CLIENT_CORE, SERVER_CORE = "0", "1"
# Bytes that may go out at once. The 10 Gbit/s of a virtual pair need more than a timer tick of them.
BURST = {"100mbit": "128kb", "1gbit": "512kb", "10gbit": "4mb"}
HALF_CORE_GROUP = "coload-half"
# The second instance of lineitem that queries run on.
QUERIED = "lineitem_queried"
SERVER_SECONDS_MAX = 60


@dataclass(frozen=True)
class Programs:
    """The programs measured, and where data sets lie."""

    client: Path  # `coload` that loads
    receive: Path  # `coload-receive`, a server without queries
    serve: Path  # `coload` with `serve`
    cache: Path

    def data(self, name):
        """The file of a data set, and its CREATE TABLE."""
        found = sorted(self.cache.glob(f"{name}-*.tbl"))
        if not found:
            sys.exit(f"no {name} in {self.cache}: make it with bench/run data {name}")
        return found[0], found[0].with_suffix(".sql")


# --- the network


def ip(*arguments, namespace=None):
    subprocess.run([*inside(namespace), *arguments], check=True)


def inside(namespace, core=None):
    """What goes before a command that runs in a namespace, on a core."""
    command = ["ip", "netns", "exec", namespace] if namespace else []
    return command + (["taskset", "-c", core] if core else [])


@contextlib.contextmanager
def network():
    """The two namespaces, for as long as the block runs."""
    if os.geteuid() != 0:
        sys.exit("network namespaces need root")
    remove_network()
    try:
        for namespace in (CLIENT, SERVER):
            ip("ip", "netns", "add", namespace)
        ip("ip", "link", "add", "cl0", "netns", CLIENT, "type", "veth", "peer", "name", "sv0", "netns", SERVER)
        for namespace, link, address in ((CLIENT, "cl0", CLIENT_ADDRESS), (SERVER, "sv0", ADDRESS)):
            ip("ip", "address", "add", f"{address}/24", "dev", link, namespace=namespace)
            ip("ip", "link", "set", link, "up", namespace=namespace)
            ip("ip", "link", "set", "lo", "up", namespace=namespace)
        yield
    finally:
        remove_network()


def remove_network():
    for namespace in (CLIENT, SERVER):
        subprocess.run(["ip", "netns", "delete", namespace], stderr=subprocess.DEVNULL)


def shape(rate):
    for namespace, link in ((CLIENT, "cl0"), (SERVER, "sv0")):
        ip("tc", "qdisc", "replace", "dev", link, "root", "tbf", "rate", rate, "burst", BURST[rate], "latency", "50ms",
           namespace=namespace)


def sent_bytes():
    """Bytes that left the client's end, headers of all layers included."""
    text = subprocess.run([*inside(CLIENT), "ip", "-s", "-j", "link", "show", "cl0"], capture_output=True, text=True, check=True)
    return json.loads(text.stdout)[0]["stats64"]["tx"]["bytes"]


# --- half a core


@contextlib.contextmanager
def half_core():
    """A control group whose processes get half a core together; gives the command that joins it."""
    v2 = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    group = Path("/sys/fs/cgroup") / ("" if v2 else "cpu") / HALF_CORE_GROUP
    group.mkdir(exist_ok=True)
    try:
        if v2:
            (group / "cpu.max").write_text("5000 10000")
        else:
            (group / "cpu.cfs_period_us").write_text("10000")
            (group / "cpu.cfs_quota_us").write_text("5000")
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "half-core"]
    finally:
        group.rmdir()


# --- servers


class Server:
    """A server of ours, in the server's namespace or on loopback."""

    def __init__(self, programs, store, queries=False, flags=(), namespace=SERVER, core=SERVER_CORE):
        host = ADDRESS if namespace else "127.0.0.1"
        if queries:
            command = [programs.serve, "serve", "--store", store, "--insecure", "--log-level", "error", "--threads", "1"]
        else:
            command = [programs.receive, store]
        command = [*inside(namespace, core), *command, "--listen", f"{host}:{PORT}", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # A server that logs must not wait for a reader.
        self.log = []
        threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True).start()
        line = self.process.stdout.readline()
        if not line.startswith(("listening on", "serving")):
            sys.exit(f"the server does not start: {line}{''.join(self.log)}")
        self.url = f"coload://{host}:{PORT}"

    def cpu_seconds(self):
        return cpu_seconds(self.process.pid)

    def stop(self):
        self.process.kill()
        self.process.wait()


def cpu_seconds(pid):
    """User and system time of a process; `ip netns exec` and `taskset` become what they start."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def scratch(programs):
    """A folder on the disk of the data sets."""
    with tempfile.TemporaryDirectory(dir=programs.cache, prefix="scratch-network-") as folder:
        yield Path(folder)
    os.sync()


def queried_store(programs, data, store):
    """Puts a store with a second instance of lineitem at `store`: a copy of one in the cache, by hard links.

    Segments are never changed in place, so that copies may share them.
    """
    file, schema = programs.data(data)
    kept = programs.cache / f"store-{file.stem}"
    if not kept.exists():
        making = kept.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        subprocess.run([programs.client, "load", file, "--schema", schema, "--table", QUERIED, "--no-header", "--into", making],
                       check=True, stdout=subprocess.DEVNULL)
        making.rename(kept)
    shutil.copytree(kept, store, copy_function=os.link)


# --- one load


def load(programs, server, data, flags, seconds_max=None, limit=None, namespace=CLIENT, core=CLIENT_CORE, threads=1):
    """Loads a data set into table t; the client's report, or None when it took longer than `seconds_max`."""
    file, schema = data if isinstance(data, tuple) else programs.data(data)
    # The limit first: within the namespace the control groups cannot be seen.
    command = [*(limit or []), *inside(namespace, core), programs.client, "load", file, "--schema", schema, "--no-header",
               "--into", f"{server.url}/t", "--threads", str(threads), "--report", "json", *flags]
    client = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = client.communicate(timeout=seconds_max)
    except subprocess.TimeoutExpired:
        client.send_signal(signal.SIGKILL)
        client.communicate()
        return None
    if client.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {err}\n{''.join(server.log)}")
    return json.loads(out)


def say(text):
    print(f"# {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
