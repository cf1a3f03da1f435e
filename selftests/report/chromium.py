"""Pages in headless Chromium, as text of their DOM once their scripts have run."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest

PROGRAM = shutil.which("chromium")

needs_chromium = pytest.mark.skipif(PROGRAM is None and not os.environ.get("CI"), reason="needs chromium")
"""CI has it: there, a missing one is a failure."""

GO = """
    function go(hash) {
      history.replaceState(null, "", "#" + hash);
      dispatchEvent(new Event("hashchange"));
    }
    """
"""By which a script goes to another view. A change of location.hash is told by another process of the browser, in real
time, and timers of the page run in virtual time: on a busy machine they would come first."""


@dataclass
class Element:
    """An element with its attributes, and what is below it."""

    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    def all(self, tag: str = "", **attributes: str) -> list[Element]:
        """Return the elements below with this tag and these attributes; ``class_`` stands for class."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        found = []
        for child in self.children:
            if isinstance(child, Element):
                if tag in ("", child.tag) and wanted.items() <= child.attributes.items():
                    found.append(child)
                found += child.all(tag, **attributes)
        return found

    def id(self, id: str) -> Element:
        (found,) = self.all(id=id)
        return found

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class _Parser(HTMLParser):
    VOID = ("meta", "link", "input", "br", "img", "hr")

    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("", {})]

    def handle_starttag(self, tag, attrs):
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in self.VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            while self.open.pop().tag != tag:
                pass

    def handle_data(self, data):
        self.open[-1].children.append(data)


def dom(page: Path, home: Path, hash: str = "") -> Element:
    """Return the DOM of a page after all of its scripts and timers."""
    assert PROGRAM is not None, "chromium is not installed"
    home.mkdir(exist_ok=True)
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--virtual-time-budget=10000")
    url = page.absolute().as_uri() + (f"#{hash}" if hash else "")
    words = [PROGRAM, *options, f"--user-data-dir={home}/profile", url]
    environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_CACHE_HOME": str(home)}
    ended = subprocess.run(words, capture_output=True, env=environment, timeout=120, check=True)
    parser = _Parser()
    parser.feed(ended.stdout.decode())
    return parser.open[0]
