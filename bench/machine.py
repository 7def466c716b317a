"""The machine under the laboratory: what it is, its memory warmed, a process measured."""

import mmap
import multiprocessing
import os
import platform
import re
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOUCH_BYTES = 8 << 30
# Left alone by the touch, for everything else that runs.
SPARE_BYTES = 2 << 30


def describe():
    """Commit, machine and versions, for the JSON line of a run."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    rivals = ["duckdb", "chdb", "tableauhyperapi", "polars", "pyarrow"]
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit(),
        "machine": {
            "cpu": cpu[1] if cpu else platform.processor(),
            "cores": os.cpu_count(),
            "memory_bytes": memory_bytes("MemTotal"),
            "kernel": platform.release(),
            "load_average": os.getloadavg()[0],
        },
        "versions": {name: version_of(name) for name in rivals},
    }


def version_of(package):
    """The version installed; None without it: not all commands use the rivals."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def commit():
    """Short hash of HEAD, with `+` when files of the project differ from it."""
    def git(*arguments):
        return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")


def memory_bytes(field):
    return int(re.search(rf"{field}:\s+(\d+) kB", Path("/proc/meminfo").read_text())[1]) * 1024


def touch_memory(size=TOUCH_BYTES):
    """Touches memory in a child, so that no contender pays for what a virtual machine must fetch first."""
    child = multiprocessing.get_context("fork").Process(target=_touch, args=(size,))
    child.start()
    child.join()


def _touch(size):
    size = min(size, memory_bytes("MemAvailable") - SPARE_BYTES)
    if size <= 0:
        return
    with mmap.mmap(-1, size) as memory:
        for offset in range(0, size, mmap.PAGESIZE):
            memory[offset] = 1


def warm_page_cache(path):
    """Reads a file once, so that every load reads it from memory."""
    with open(path, "rb", buffering=0) as file:
        buffer = bytearray(16 << 20)
        while file.readinto(buffer):
            pass


def run_measured(command):
    """Runs a command; returns its standard output and wall, CPU and peak memory of the whole process."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    output = child.stdout.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"exit status {child.returncode} of: {' '.join(map(str, command))}\n{output}")
    measured = {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "peak_bytes": usage.ru_maxrss * 1024}
    return output, measured
