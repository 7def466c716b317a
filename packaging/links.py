#!/usr/bin/env python3
"""Checks a site: each link within it leads to a page and a place that are there, and nothing is fetched from elsewhere."""

import html.parser
import pathlib
import sys
import urllib.parse

# What a browser fetches by itself, by tag: the attribute that says from where.
FETCHED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.fetched, self.ids = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        of = dict(attributes)
        self.ids |= {of[name] for name in ("id", "name") if of.get(name)}
        if tag == "a" and of.get("href"):
            self.links.append(of["href"])
        if of.get(FETCHED.get(tag, "")):
            self.fetched.append(of[FETCHED[tag]])


def faults(site):
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        shown = path.relative_to(site)
        for link in page.fetched:
            if urllib.parse.urlsplit(link).scheme not in ("", "data"):
                yield f"{shown}: fetches {link}"
        # All pages in one are those again.
        if path.name in ("print.html", "404.html", "toc.html"):
            continue
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            to = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if not to.exists():
                yield f"{shown}: {link} leads nowhere"
            elif parts.fragment and to in pages and urllib.parse.unquote(parts.fragment) not in pages[to].ids:
                yield f"{shown}: {link} names no place of that page"


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    found = list(faults(site))
    for fault in found:
        print(fault, file=sys.stderr)
    if found or not (site / "index.html").exists():
        sys.exit(f"{len(found)} faults of links in {site}")


main()
