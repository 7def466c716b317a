"""Servers of PostgreSQL and MariaDB in folders of their own, and what processes use while a load runs."""

import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

# As often is looked at what processes use.
EVERY = 0.05
TICK = os.sysconf("SC_CLK_TCK")


def need(packages, programs):
    """Installs packages of Debian whose programs are missing, which needs root."""
    if all(shutil.which(program) or Path(program).exists() for program in programs):
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-q"], env=environment, stdout=subprocess.DEVNULL, check=False)
    command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)


def as_nobody(*command):
    """PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return list(command)
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *command]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """A server; ended when the block ends."""

    def __init__(self, folder):
        self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-", dir=folder))
        self.folder.chmod(0o777)
        self.port = free_port()
        self.child = None

    def __enter__(self):
        self.make()
        self.child = subprocess.Popen(self.command(), cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            if subprocess.run(self.client("SELECT 1", ""), capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        else:
            raise SystemExit(f"{self.name} does not start")
        self.prepare()
        return self

    def __exit__(self, *_):
        self.child.terminate()
        self.child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def prepare(self):
        pass

    def sql(self, statement):
        done = subprocess.run(self.client(statement), capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{self.name}: {statement}: {done.stderr}")
        return done.stdout.strip()

    def version(self):
        return self.sql("SELECT version()")


class Postgres(Server):
    name = "postgresql"
    methods = ["copy-binary", "copy-text", "unnest", "values", "prepared", "insert", "insert-autocommit"]
    # One row at a time.
    slow = {"prepared", "insert", "insert-autocommit"}

    def program(self, name):
        found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
        return str(found[-1]) if found else name

    def make(self):
        need(["postgresql", "postgresql-client"], ["psql", self.program("initdb")])
        data = str(self.folder / "data")
        command = as_nobody(self.program("initdb"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "-D", data)
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def command(self):
        flags = ["-p", str(self.port), "-k", str(self.folder), "-c", "listen_addresses=127.0.0.1"]
        return as_nobody(self.program("postgres"), "-D", str(self.folder / "data"), *flags)

    def client(self, statement, _database=None):
        return ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", self.url(), "-c", statement]

    def url(self):
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres?sslmode=disable"


class Mariadb(Server):
    name = "mariadb"
    methods = ["load-data", "values", "prepared", "insert", "insert-autocommit"]
    slow = {"prepared", "insert", "insert-autocommit"}

    def make(self):
        need(["mariadb-server", "mariadb-client"], ["/usr/sbin/mariadbd", "mariadb"])
        data = self.folder / "data"
        command = as_nobody("mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", f"--datadir={data}")
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def command(self):
        flags = ["--no-defaults", "--bind-address=127.0.0.1", "--port", str(self.port)]
        places = [f"--{what}={self.folder / name}" for what, name in [("datadir", "data"), ("socket", "s"), ("pid-file", "p")]]
        return as_nobody("/usr/sbin/mariadbd", *flags, *places)

    def prepare(self):
        rights = "CREATE DATABASE d; CREATE USER u@'%' IDENTIFIED BY 'p'; GRANT ALL ON *.* TO u@'%'"
        subprocess.run(self.client(rights, ""), check=True)

    def client(self, statement, database="d"):
        place = ["-h", "127.0.0.1", "-P", str(self.port), "-u", "root", "--local-infile=1"]
        return ["mariadb", "--no-defaults", *place, "-N", "-B", "-e", statement, *([database] if database else [])]

    def url(self):
        return f"mysql://u:p@127.0.0.1:{self.port}/d"


def family(root):
    """Numbers of a process and all that it started."""
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                after = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(after[1]), []).append(int(entry.name))
    found, left = [], [root]
    while left:
        process = left.pop()
        found.append(process)
        left.extend(children.get(process, []))
    return found


def used(process):
    """CPU seconds, resident bytes and bytes written of a process; None when it is gone."""
    try:
        after = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return None
    try:
        lines = dict(line.split(": ") for line in Path(f"/proc/{process}/io").read_text().splitlines())
        written = int(lines["write_bytes"])
    except (OSError, ValueError):
        written = 0
    return (int(after[11]) + int(after[12])) / TICK, pages * os.sysconf("SC_PAGE_SIZE"), written


class Sampled:
    """What a family of processes used within the block: `cpu`, `peak_bytes`, `written_bytes`, and a line of samples."""

    def __init__(self, root):
        self.root, self.seen, self.samples = root, {}, []
        self.peak_bytes, self.ended = 0, threading.Event()

    def look(self):
        resident = 0
        for process in family(self.root):
            now = used(process)
            if now:
                first, _ = self.seen.get(process, (now if self.begun is None else (0.0, 0, 0), now))
                self.seen[process] = (first, now)
                resident += now[1]
        self.peak_bytes = max(self.peak_bytes, resident)
        cpu = sum(now[0] - first[0] for first, now in self.seen.values())
        written = sum(now[2] - first[2] for first, now in self.seen.values())
        if self.begun is None:
            self.begun = time.perf_counter()
        self.samples.append([round(time.perf_counter() - self.begun, 3), round(cpu, 2), resident, written])

    def run(self):
        while not self.ended.wait(EVERY):
            self.look()

    def __enter__(self):
        self.begun = None
        self.look()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.look()
        self.cpu, self.written_bytes = self.samples[-1][1], self.samples[-1][3]

    def figures(self):
        return {"cpu": self.cpu, "peak_bytes": self.peak_bytes, "written_bytes": self.written_bytes}
