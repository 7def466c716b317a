"""A PostgreSQL server of its own, on a socket in its folder, and one psql that stays connected to it."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

# Where distributions put the programs of the server.
POSTGRES_FOLDERS = "usr/lib/postgresql/*/bin"
END = "end of the answer"


class Server:
    """Its own defaults but for `max_wal_size` (16 GB, so that checkpoints do not end the comparison)."""

    def __init__(self, folder):
        folders = sorted(Path("/").glob(POSTGRES_FOLDERS))
        if not folders:
            sys.exit("PostgreSQL is not installed: apt-get install postgresql")
        cluster = Path(folder)
        cluster.mkdir()
        user = []
        if os.geteuid() == 0:
            # PostgreSQL does not run as root; its user must reach the folder.
            shutil.chown(cluster, "postgres")
            for parent in cluster.parents:
                if parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o001:
                    parent.chmod(parent.stat().st_mode | 0o011)
            user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        initdb = [*user, folders[-1] / "initdb", "--pgdata", cluster, "--username=postgres", "--auth=trust", "--no-sync"]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL)
        # A socket's name is short.
        self.socket = Path(f"/tmp/coload-bench-{os.getpid()}")
        self.socket.mkdir(mode=0o777)
        self.socket.chmod(0o777)
        self.process = subprocess.Popen(
            [*user, folders[-1] / "postgres", "-D", cluster, "-h", "", "-k", self.socket, "-c", "max_wal_size=16GB"],
            stderr=subprocess.DEVNULL,
        )
        psql = ["psql", "-X", "-q", "-A", "-t", "-h", self.socket, "-U", "postgres", "-v", "ON_ERROR_STOP=1"]
        for _ in range(100):
            if subprocess.run([*psql, "-c", "select 1"], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        self.psql = subprocess.Popen(psql, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, statement):
        """Runs a statement, and gives what psql prints of its answer."""
        end = "" if statement.startswith("\\") else ";"
        self.psql.stdin.write(f"{statement}{end}\n\\echo {END}\n")
        self.psql.stdin.flush()
        lines = []
        for line in self.psql.stdout:
            if line.strip() == END:
                return "".join(lines)
            lines.append(line)
        sys.exit(f"psql ended at {statement}")

    def stop(self):
        self.psql.stdin.close()
        self.psql.wait()
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.socket, ignore_errors=True)
