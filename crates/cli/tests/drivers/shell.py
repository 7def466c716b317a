"""The shell of `coload sql` at a terminal. Arguments: the program, a store or server, and the name of a scenario."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

PATIENCE = 60.0
CHECKS = 0
PROMPT = "coload> "


class Terminal:
    """A program at a terminal of its own."""

    def __init__(self, words, rows=40, columns=100, **environment):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", "HOME": os.getcwd(), **environment})
            os.environ.pop("XDG_STATE_HOME", None)
            os.environ.pop("XDG_CONFIG_HOME", None)
            os.execv(words[0], words)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, text):
        os.write(self.fd, text.encode())

    def read(self, seconds):
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += data.decode(errors="replace")
        return bool(data)

    def expect(self, text):
        """Waits for a text, and gives what came until its end."""
        global CHECKS
        CHECKS += 1
        end = time.monotonic() + PATIENCE
        while text not in self.seen:
            left = end - time.monotonic()
            if left <= 0 or not self.read(left):
                raise AssertionError(f"{text!r} did not come; there was {self.seen!r}")
        at = self.seen.index(text) + len(text)
        before, self.seen = self.seen[:at], self.seen[at:]
        return before

    def settle(self):
        """Waits until the line has been drawn: a key that comes meanwhile would be echoed by the terminal."""
        while self.read(0.15):
            pass

    def ask(self, line):
        """Sends a line at a prompt, and gives what comes until the next."""
        self.settle()
        self.send(line + "\r")
        self.expect("\r\n")
        return self.expect("\r" + PROMPT)

    def status(self):
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


def plain(text):
    """A text without what moves the cursor and colours."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def start(program, store, **environment):
    terminal = Terminal([program, store], **environment)
    terminal.expect(PROMPT)
    return terminal


def words(program, store):
    terminal = start(program, store, NO_COLOR="1")
    assert "(3 rows)" in terminal.ask("SELECT * FROM range(3);")
    assert "rows as lines of a name and a value: on" in terminal.ask("\\x")
    shown = terminal.ask("SELECT 1 AS a, 'b' AS longer;")
    assert "-[ row 1 ]-" in shown and "longer | b" in shown, shown
    terminal.ask("\\x off")
    assert "timing off" in terminal.ask("\\timing")
    shown = terminal.ask("SELECT 2 AS two;")
    assert "(1 row)\r\n" in shown and " s\r\n" not in shown.split("(1 row)")[1], shown
    assert "\\timing" in terminal.ask("help")
    assert "people" in terminal.ask("\\dt")
    assert "born" in terminal.ask("\\d people")
    terminal.ask("\\output csv")
    assert "a\r\n1\r\n" in terminal.ask("SELECT 1 AS a;")
    terminal.ask("\\o answers.json")
    terminal.ask("SELECT 1 AS a;")
    assert not os.path.exists("answers.json")
    terminal.ask("\\output")
    terminal.ask("\\o answers.jsonl")
    with open("answers.json") as file:
        assert file.read() == "a\n1\n"
    terminal.ask("SELECT 1 AS a;")
    terminal.ask("\\o")
    with open("answers.jsonl") as file:
        assert file.read() == '{"a":1}\n'
    with open("script.sql", "w") as file:
        file.write("SELECT 41 + 1 AS answer;\n\nSELECT nothing;")
    shown = terminal.ask("\\i script.sql")
    assert "| 42 |" in shown.replace("     ", " ") and "script.sql:3: statement 2: " in shown, shown
    assert "no command" in terminal.ask("\\nothing")
    terminal.settle()
    terminal.send("exit\r")
    assert terminal.status() == 0


def keys(program, store):
    terminal = start(program, store, NO_COLOR="1")
    terminal.settle()
    terminal.send("sel\t")
    terminal.settle()
    terminal.send("bor\t")
    terminal.settle()
    terminal.send("fro\t")
    terminal.settle()
    # Two words begin so: from and from_unixtime.
    terminal.send(" peo\t")
    terminal.settle()
    shown = terminal.ask("order by 1;")
    assert "1815-12-10" in shown, shown
    # A search in what was typed, the newest first.
    terminal.ask("SELECT 'first' AS x;")
    terminal.ask("SELECT 'second' AS x;")
    terminal.settle()
    terminal.send("\x12first")
    terminal.expect("(search) first: SELECT 'first' AS x;")
    shown = terminal.ask("")
    assert "| first |" in shown, shown
    # Tabs and line ends of a text that is pasted are no keys.
    terminal.settle()
    terminal.send("\x1b[200~SELECT\tbor\t\tFROM people\rWHERE name = 'Ada'\x1b[201~")
    terminal.settle()
    shown = terminal.ask(";")
    assert "bor" in shown and "error" in shown, shown
    # Several words are listed.
    terminal.settle()
    terminal.send("\\o\t\t")
    terminal.expect("\\output")
    terminal.settle()
    terminal.send("\x03")
    terminal.settle()
    terminal.send("\x04")
    assert terminal.status() == 0


def colours(program, store):
    terminal = start(program, store)
    terminal.settle()
    terminal.send("select 'x'")
    terminal.expect("\x1b[1;34mselect")
    terminal.settle()
    terminal.send("\x03")
    terminal.settle()
    terminal.send("\x04")
    assert terminal.status() == 0
    terminal = start(program, store, NO_COLOR="1")
    terminal.settle()
    terminal.send("select 'x'")
    terminal.settle()
    assert "\x1b[1;34m" not in terminal.seen
    terminal.send("\x03")
    terminal.settle()
    terminal.send("\x04")
    assert terminal.status() == 0


def cancels(program, store):
    terminal = start(program, store, NO_COLOR="1")
    slow = "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.value % 7 + b.value % 11 = 3;"
    terminal.settle()
    terminal.send(slow + "\r")
    time.sleep(1.5)
    started = time.monotonic()
    terminal.send("\x03")
    terminal.expect("cancelled")
    assert time.monotonic() - started < 5, time.monotonic() - started
    terminal.expect("\r" + PROMPT)
    # The shell goes on, and so does what it talks to.
    assert "| 2 |" in terminal.ask("SELECT 1 + 1 AS b;")
    # One that prints much.
    terminal.ask("\\maxrows 0")
    terminal.settle()
    terminal.send("SELECT * FROM range(1000000000);\r")
    terminal.expect("| 5000")
    terminal.send("\x03")
    terminal.expect("cancelled")
    terminal.expect("\r" + PROMPT)
    terminal.settle()
    terminal.send("\x04")
    assert terminal.status() == 0


def tables(program, store):
    terminal = start(program, store, NO_COLOR="1")
    shown = plain(terminal.ask("SELECT * FROM range(1000000);"))
    assert "(1000000 rows, 40 shown)" in shown and "999999 |" in shown, shown
    shown = plain(terminal.ask("SELECT repeat('long ', 100) AS a, 1 AS b;"))
    lines = [line for line in shown.splitlines() if line.startswith(("|", "+"))]
    assert lines and all(len(line) <= 100 for line in lines) and "…" in shown, shown
    many = ", ".join(f"{i} AS a_long_name_{i}" for i in range(30))
    shown = plain(terminal.ask(f"SELECT {many};"))
    lines = [line for line in shown.splitlines() if line.startswith(("|", "+"))]
    assert all(len(line) <= 100 for line in lines), shown
    assert "(1 row; 30 columns, " in shown and "a_long_name_29" in shown, shown
    terminal.ask("\\maxrows 4")
    assert "(10 rows, 4 shown)" in terminal.ask("SELECT * FROM range(10);")
    # What commands a terminal is shown.
    shown = terminal.ask("SELECT chr(27) || ']0;title' || chr(7) AS x;")
    assert "\x1b]0;" not in shown and "\\u{1b}]0;title\\u{7}" in shown, shown
    terminal.ask("\\output csv")
    shown = terminal.ask("SELECT chr(27) || ']0;title' || chr(7) AS x;")
    assert "\x1b]0;" not in shown and "\\u{1b}]0;title\\u{7}" in shown, shown
    terminal.ask("\\output parquet")
    assert "give -o FILE" in terminal.ask("SELECT 1;")
    terminal.ask("\\output")
    terminal.ask("\\maxrows")
    # A pager gets all rows, and may end before it has read them.
    terminal.ask("\\pager on")
    terminal.settle()
    terminal.send("SELECT * FROM range(100000000);\r")
    terminal.expect("3 |")
    terminal.expect("\r" + PROMPT)
    terminal.settle()
    terminal.send("\x04")
    assert terminal.status() == 0


def edits(program, store):
    with open("editor", "w") as file:
        file.write("#!/bin/sh\nsed -i 's/1/7/' \"$1\"\n")
    os.chmod("editor", 0o755)
    terminal = start(program, store, NO_COLOR="1", EDITOR=os.path.abspath("editor"))
    terminal.ask("SELECT 1 AS a;")
    shown = terminal.ask("\\e")
    assert "SELECT 7 AS a;" in shown and "| 7 |" in shown, shown
    terminal.settle()
    terminal.send("\x04")
    assert terminal.status() == 0


if __name__ == "__main__":
    os.environ.setdefault("COLOAD_PAGER", "head -n 8")
    signal.alarm(300)
    globals()[sys.argv[3]](sys.argv[1], sys.argv[2])
    print(f"{CHECKS} checks")
