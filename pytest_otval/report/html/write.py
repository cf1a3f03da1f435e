"""Writes the pages: fixed files, the index's data, and one script for each few hundred details.

Nothing of a task ever is markup: data are JSON in scripts, and the page makes text nodes of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pytest_otval.core import OtvalUsageError
from pytest_otval.report.attempts import is_attempt
from pytest_otval.report.html.data import DETAILS_A_PAGE, index_data
from pytest_otval.report.html.details import detail
from pytest_otval.report.html.scripts import script
from pytest_otval.report.results import Results

FIXED = ("index.html", "page.css", "page.js")
OF_MODELS = ("models.html", "models.css", "models.js", "plots.js")
"""Fixed, too, where models made attempts."""
OF_REVIEWS = ("reviews.html", *OF_MODELS[1:])
"""Where a model reviewed something."""
ROWS, MODELS, REVIEWS, DETAILS = "rows.js", "models-data.js", "reviews-data.js", "details"
OF_ATTEMPTS = ("models", "tasks", "trajectories")
DATA_FOLDERS = (DETAILS, *OF_ATTEMPTS, "reviews")
_DATA_NAME = re.compile(r"[0-9]+\.js")


def write_html(results: Results, folder: Path, planned: int | None = None) -> Path:
    """Write the pages into a folder and return the path of the index.

    ``planned``: how many attempts each model was to make at each task. Raises OtvalUsageError for a folder with
    anything but such pages; OSError.
    """
    _clear(folder)
    _fixed(folder, FIXED)
    (folder / DETAILS).mkdir(exist_ok=True)
    script(folder / ROWS, "index", index_data(results.rows, results.run, results.facts))
    lines = results.lines()
    for number, page in enumerate(_pages(detail(line, results.run) for line in lines)):
        script(folder / DETAILS / f"{number}.js", "details", number, page)
    if any(map(is_attempt, results.rows)):
        from pytest_otval.report.html.write_models import write_models

        _fixed(folder, OF_MODELS)
        for name in OF_ATTEMPTS:
            (folder / name).mkdir(exist_ok=True)
        script(folder / MODELS, "overview", write_models(results, folder, planned))
    if any(row.reviews for row in results.rows):
        from pytest_otval.report.html.write_reviews import write_reviews

        _fixed(folder, OF_REVIEWS)
        (folder / "reviews").mkdir(exist_ok=True)
        script(folder / REVIEWS, "overview", write_reviews(results, folder / "reviews"))
    return folder / "index.html"


def _fixed(folder: Path, names: Iterable[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(files(__package__).joinpath(name).read_bytes())


def _clear(folder: Path) -> None:
    """Remove the data of pages that were there before: there may be fewer now."""
    if not folder.is_dir():
        if folder.exists():
            raise OtvalUsageError(f"{folder} is no folder: give the folder for the pages")
        return
    if any(folder.iterdir()) and not (folder / ROWS).is_file():
        raise OtvalUsageError(f"{folder} holds other files than our pages: give a new folder")
    for path in chain.from_iterable((folder / name).glob("*.js") for name in DATA_FOLDERS):
        if _DATA_NAME.fullmatch(path.name):
            path.unlink()
    for name in (*OF_MODELS, *OF_REVIEWS, MODELS, REVIEWS):
        (folder / name).unlink(missing_ok=True)


def _pages(details: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while page := list(islice(details, DETAILS_A_PAGE)):
        yield page
