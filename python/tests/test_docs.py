"""What is written in docstrings and pages is run."""

import doctest
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import coload

ROOT = pathlib.Path(__file__).parents[2]
MODULES = sorted(
    name
    for name, module in sys.modules.items()
    if name.split(".")[0] == "coload" and hasattr(module, "__file__") and not name.endswith("_native")
)


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_docstrings_are_right(module):
    done = doctest.testmod(sys.modules[module], optionflags=doctest.ELLIPSIS)
    assert done.failed == 0


def test_there_are_examples():
    found = doctest.DocTestFinder().find(coload.Result, "Result", globs={})
    assert sum(len(test.examples) for test in found) > 10


def blocks(page):
    """The blocks of Python of a page, with the lines that they start on."""
    text = (ROOT / page).read_text()
    for match in re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S):
        yield text.count("\n", 0, match.start()) + 2, match[1]


def test_the_page_of_the_package_is_right():
    space = {"__name__": "page"}
    for line, block in blocks("docs/python.md"):
        code = compile("\n" * (line - 1) + block, "docs/python.md", "exec")
        exec(code, space)


def test_the_clients_of_a_server_are_right():
    address = os.environ["COLOAD_TEST_SERVER"].partition("://")[2]
    space = {"__name__": "page"}
    for line, block in blocks("docs/clients.md"):
        block = block.replace("127.0.0.1:8470", address)
        block = block.replace("127.0.0.1:8432", os.environ["COLOAD_TEST_POSTGRES"])
        exec(compile("\n" * (line - 1) + block, "docs/clients.md", "exec"), space)


def test_the_notebook_runs():
    cells = json.loads((ROOT / "python/examples/first_steps.ipynb").read_text())["cells"]
    space = {"__name__": "notebook"}
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(sources) >= 4
    for source in sources:
        exec(compile(source, "first_steps.ipynb", "exec"), space)


def test_the_types_are_sound(folder):
    package = pathlib.Path(coload.__file__).parent
    (folder / "use.py").write_text(
        "import coload\n"
        "db = coload.connect('s')\n"
        "report = db.load('a.csv', max_rejects=1)\n"
        "rows: list[tuple[object, ...]] = db.sql('SELECT 1').fetchall()\n"
        "coload.connect(1)\n"
        "db.load('a.csv', max_reject=1)\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--no-incremental"]
    done = subprocess.run([*command, "-p", "coload"], capture_output=True, text=True, cwd=package.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run([*command, "use.py"], capture_output=True, text=True)
    wrong = [line for line in range(1, 7) if f"use.py:{line}:" in done.stdout]
    assert wrong == [5, 6], done.stdout
