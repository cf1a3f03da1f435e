"""Writes the pages: fixed files, the index's data, and one script for each few hundred details.

All data are scripts that call a function of the page, since a page that was opened from a folder may load scripts and
nothing else. Nothing of a task ever is markup: data are JSON, and the page makes text nodes of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_otval.core import OtvalUsageError
from pytest_otval.report.html.data import DETAILS_A_PAGE, index_data
from pytest_otval.report.html.details import detail
from pytest_otval.report.results import Results

FIXED = ("index.html", "page.css", "page.js")
ROWS, DETAILS = "rows.js", "details"
_DETAILS_NAME = re.compile(r"[0-9]+\.js")


def write_html(results: Results, folder: Path) -> Path:
    """Write the pages into a folder and return the path of the index.

    Raises OtvalUsageError for a folder with anything but such pages; OSError.
    """
    _clear(folder)
    (folder / DETAILS).mkdir(parents=True, exist_ok=True)
    for name in FIXED:
        (folder / name).write_bytes(files(__package__).joinpath(name).read_bytes())
    _script(folder / ROWS, "index", index_data(results.rows, results.run, results.facts))
    lines = results.lines()
    for number, page in enumerate(_pages(detail(line, results.run) for line in lines)):
        _script(folder / DETAILS / f"{number}.js", "details", number, page)
    return folder / "index.html"


def _clear(folder: Path) -> None:
    """Remove the data of pages that were there before: there may be fewer now."""
    if not folder.is_dir():
        if folder.exists():
            raise OtvalUsageError(f"{folder} is no folder: give the folder for the pages")
        return
    if any(folder.iterdir()) and not (folder / ROWS).is_file():
        raise OtvalUsageError(f"{folder} holds other files than our pages: give a new folder")
    for path in (folder / DETAILS).glob("*.js"):
        if _DETAILS_NAME.fullmatch(path.name):
            path.unlink()


def _pages(details: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while page := list(islice(details, DETAILS_A_PAGE)):
        yield page


def _script(path: Path, function: str, *arguments: Any) -> None:
    values = ",".join(script_json(argument) for argument in arguments)
    path.write_text(f'"use strict";\notval.{function}({values});\n', encoding="ascii")


def script_json(value: Any) -> str:
    """Return JSON that stays data wherever it is put: no end of a script or comment, no line end of JavaScript's."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
