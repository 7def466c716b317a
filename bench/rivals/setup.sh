#!/bin/sh
# Installs the rivals at pinned versions into bench/.venv; does nothing when they are there already.
set -eu
cd "$(dirname "$0")/.."
stamp=.venv/requirements.txt
if ! cmp -s rivals/requirements.txt "$stamp"; then
    python3 -m venv .venv
    .venv/bin/pip install --quiet --disable-pip-version-check -r rivals/requirements.txt
    cp rivals/requirements.txt "$stamp"
fi
