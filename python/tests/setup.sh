#!/bin/sh
# Installs what the tests use, at pinned versions, into a folder; does nothing when it is there.
# Usage: setup.sh FOLDER
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
stamp=$folder/requirements.txt
if ! cmp -s "$here/requirements.txt" "$stamp"; then
    python3 -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$stamp"
fi
