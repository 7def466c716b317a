"""What else a user would do with a file near the client and a database elsewhere, in the same emulated network.

Both write what they load to the server's disk. Each has the same core as our server. PostgreSQL runs with its own
defaults but for `max_wal_size` (16 GB, so that checkpoints do not end the comparison); the schema has one more column for
the empty field that stands after the last delimiter of TPC-H's files.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import machine
import netlab
from netlab import ADDRESS, CLIENT, SERVER, inside

POSTGRES_PORT, COPY_PORT = 5432, 8471
# Where distributions put the programs of the server.
POSTGRES_FOLDERS = "/usr/lib/postgresql/*/bin"
SEND = """
import socket, sys
with open(sys.argv[1], "rb") as file, socket.create_connection((sys.argv[2], int(sys.argv[3]))) as out:
    out.sendfile(file)
    out.shutdown(socket.SHUT_WR)
    out.recv(1)
"""
# Says so when the file is durable.
TAKE = """
import os, socket, sys
with socket.create_server((sys.argv[2], int(sys.argv[3]))) as server:
    print("ready", flush=True)
    with server.accept()[0] as connection, open(sys.argv[1], "wb", buffering=0) as file:
        buffer = memoryview(bytearray(1 << 20))
        while size := connection.recv_into(buffer):
            file.write(buffer[:size])
        os.fsync(file.fileno())
        connection.send(b"1")
"""


def postgres(programs, data, folder):
    """`psql \\copy` into a new cluster, which has an empty table."""
    file, schema = programs.data(data)
    machine.warm_page_cache(file)
    programs_folder = sorted(Path("/").glob(POSTGRES_FOLDERS.lstrip("/")))
    if not programs_folder:
        sys.exit("PostgreSQL is not installed: apt-get install postgresql")
    tools, cluster = programs_folder[-1], folder / "postgres"
    cluster.mkdir()
    # PostgreSQL does not run as root; its user must reach the folder.
    shutil.chown(cluster, "postgres")
    os.chmod(folder, 0o755)
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    subprocess.run([*user, tools / "initdb", "--pgdata", cluster, "--auth=trust", "--no-sync"], check=True, stdout=subprocess.DEVNULL)
    with open(cluster / "pg_hba.conf", "a") as rules:
        rules.write(f"host all all {netlab.CLIENT_ADDRESS}/32 trust\n")
    server = subprocess.Popen([*inside(SERVER, netlab.SERVER_CORE), *user, tools / "postgres", "-D", cluster, "-h", ADDRESS,
                               "-p", str(POSTGRES_PORT), "-k", cluster, "-c", "max_wal_size=16GB"],
                              stderr=open(folder / "postgres.log", "w"))
    try:
        psql = [*inside(CLIENT, netlab.CLIENT_CORE), "psql", "-X", "-q", "-h", ADDRESS, "-p", str(POSTGRES_PORT), "-U", "postgres",
                "-v", "ON_ERROR_STOP=1"]
        for _ in range(100):
            if subprocess.run([*psql, "-c", "select 1"], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        create = re.sub(r"CREATE TABLE \w+", "CREATE TABLE t", schema.read_text()).rstrip().removesuffix(");")
        subprocess.run([*psql, "-c", f"{create}, after_last_delimiter TEXT)"], check=True)
        before, start = tree_cpu_seconds(server.pid), time.monotonic()
        subprocess.run([*psql, "-c", f"\\copy t from '{file}' with (delimiter '|', null '')"], check=True)
        wall = time.monotonic() - start
        cpu = tree_cpu_seconds(server.pid) - before
        rows = subprocess.run([*psql, "-A", "-t", "-c", "select count(*) from t"], capture_output=True, text=True, check=True).stdout
    finally:
        server.terminate()
        server.wait()
    return {"wall_s": wall, "server_cpu_s": cpu, "rows": int(rows)}


def tree_cpu_seconds(pid):
    """CPU of a process and those it has started, ended ones too."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(stat.parent.name) == pid or int(fields[1]) == pid:
            ticks += int(fields[11]) + int(fields[12])
        if int(stat.parent.name) == pid:
            ticks += int(fields[13]) + int(fields[14])
    return ticks / os.sysconf("SC_CLK_TCK")


def copy_and_duckdb(programs, data, folder):
    """The file is copied without encryption, which scp would add; then DuckDB loads it, order not kept."""
    file, schema = programs.data(data)
    machine.warm_page_cache(file)
    copied = folder / file.name
    taker = subprocess.Popen([*inside(SERVER, netlab.SERVER_CORE), sys.executable, "-c", TAKE, copied, ADDRESS, str(COPY_PORT)],
                             stdout=subprocess.PIPE, text=True)
    if taker.stdout.readline() != "ready\n":
        sys.exit("the taker of the copy does not start")
    start = time.monotonic()
    subprocess.run([*inside(CLIENT, netlab.CLIENT_CORE), sys.executable, "-c", SEND, file, ADDRESS, str(COPY_PORT)], check=True)
    copying = time.monotonic() - start
    taker.wait()
    script = machine.ROOT / "bench/rivals/load_duckdb.py"
    done = subprocess.run([*inside(SERVER, netlab.SERVER_CORE), sys.executable, script, copied, schema, folder / "duckdb", "--threads", "1"],
                          capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    return {"wall_s": copying + loaded["wall"], "copy_s": copying, "server_cpu_s": loaded["cpu"], "rows": loaded["rows"]}
