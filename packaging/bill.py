#!/usr/bin/env python3
"""What the program is made of: a bill of materials (CycloneDX) and the licences of all crates in it.

    packaging/bill.py --check        every crate has a licence of the list, or the build must not be given away
    packaging/bill.py OUT            writes OUT/sbom.cdx.json and OUT/THIRD-PARTY.txt

Both are made of what cargo resolves for this machine's kind, so that they cannot be out of date.
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Licences that ask for no more than to be named. What is not in this list is refused.
ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "bzip2-1.0.6",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
}
LICENCE_FILES = re.compile(r"(?i)^(licen[cs]e|copying|notice|copyright|unlicense)")


def metadata():
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", platform()]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)


def platform():
    output = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return next(line.split()[1] for line in output.splitlines() if line.startswith("host:"))


def crates_of_the_program(packages):
    """The packages that are linked into the program with all its features, without what only builds and tests need."""
    command = ["cargo", "tree", "--locked", "-p", "coload", "-e", "normal,no-proc-macro", "--prefix", "none"]
    command += ["--format", "{p}", "--target", platform()]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    named = {tuple(line.split()[:2]) for line in output.splitlines() if line.strip()}
    named = {(name, version.removeprefix("v")) for name, version in named}
    found = [package for package in packages if (package["name"], package["version"]) in named]
    assert len(found) >= len(named), "cargo tree names a package that cargo metadata does not"
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def is_allowed(expression):
    """Whether a licence expression (SPDX) can be met by licences of the list: all of an AND, one of an OR."""
    words = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def any_of():
        allowed = all_of()
        while words and words[0] == "OR":
            words.pop(0)
            allowed = all_of() or allowed
        return allowed

    def all_of():
        allowed = one()
        while words and words[0] == "AND":
            words.pop(0)
            allowed = one() and allowed
        return allowed

    def one():
        word = words.pop(0)
        if word == "(":
            allowed = any_of()
            assert words.pop(0) == ")", expression
            return allowed
        if words and words[0] == "WITH":
            words.pop(0)
            word += f" WITH {words.pop(0)}"
        return word in ALLOWED

    allowed = any_of()
    assert not words, expression
    return allowed


def check(packages):
    refused = [p for p in packages if not (p["license"] and is_allowed(p["license"]))]
    for package in refused:
        print(f"{package['name']} {package['version']}: {package['license'] or 'no licence'}", file=sys.stderr)
    if refused:
        sys.exit("licences that are not in the list of packaging/bill.py")
    print(f"{len(packages)} crates, all with licences of the list")


def our_own(package):
    return package["source"] is None


def bill(crates):
    def component(package):
        name, version = package["name"], package["version"]
        return {
            "type": "library",
            "bom-ref": f"pkg:cargo/{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:cargo/{name}@{version}",
            "licenses": [{"expression": package["license"].replace("/", " OR ")}],
            **({"externalReferences": [{"type": "vcs", "url": package["repository"]}]} if package["repository"] else {}),
        }

    version = next(package["version"] for package in crates if package["name"] == "coload")
    lock = (ROOT / "Cargo.lock").read_bytes()
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        # The same sources give the same bill.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, hashlib.sha256(lock).hexdigest())}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "bom-ref": "coload", "name": "coload", "version": version},
        },
        "components": [component(package) for package in crates if not our_own(package)],
    }


def licences(crates):
    """Each text once, under the names of the crates that have it."""
    texts, without = {}, []
    for package in crates:
        if our_own(package):
            continue
        title = f"{package['name']} {package['version']} ({package['license']})"
        folder = pathlib.Path(package["manifest_path"]).parent
        # Libraries of C lie in folders of their crates, with licences of their own.
        found = (path for depth in ("*", "*/*", "*/*/*") for path in folder.glob(depth))
        files = sorted(path for path in found if path.is_file() and LICENCE_FILES.match(path.name))
        for path in files:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            texts.setdefault(text, []).append(title)
        if not files:
            authors = ", ".join(package["authors"]) or "authors not named"
            without.append(f"{title}, {authors}, {package['repository'] or 'no repository named'}")
    parts = ["Coload contains these crates, each under the licence that is named behind it."]
    for text, titles in sorted(texts.items(), key=lambda item: item[1]):
        parts.append("=" * 78 + "\n" + "\n".join(dict.fromkeys(titles)) + "\n" + "-" * 78 + "\n" + text)
    if without:
        parts.append("=" * 78 + "\nPackages without a text of their own:\n" + "\n".join(without))
    return "\n\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    packages = metadata()["packages"]
    if args.check:
        check(packages)
    if args.out:
        crates = crates_of_the_program(packages)
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "sbom.cdx.json").write_text(json.dumps(bill(crates), indent=1) + "\n")
        (args.out / "THIRD-PARTY.txt").write_text(licences(crates))
        print(f"{len(crates)} crates in {args.out}/sbom.cdx.json and THIRD-PARTY.txt")


main()
