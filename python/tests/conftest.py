"""A folder and a store for each test."""

import pathlib
import sys

import pytest

import coload

sys.path.insert(0, str(pathlib.Path(__file__).parent))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def db(folder):
    with coload.connect(folder / "store") as db:
        yield db
