"""pytest-html's page: our columns, few rows, and the way to our own pages, which hold all rows and all logs.

pytest-html keeps every row and log in one file and in memory, and draws all of them at once. So it gets the first rows
of ours only, and a headline in place of a log. Cells are written as they are, so they are escaped here.
"""

from __future__ import annotations

import os
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.glue import extensions
from pytest_otval.glue.outcome import answer_of
from pytest_otval.glue.plan import OUT, PLAN
from pytest_otval.report.text import one_line

COLUMNS = ("Verdict", "Class", "Score", "Seconds", "Image")

MOST_ROWS = 1000
"""Of our items, in pytest-html's page."""

_CELL_LETTERS = 60


class HtmlPage:
    """Hooks of pytest-html, on the controller."""

    def __init__(self, config: pytest.Config) -> None:
        page = Path(os.path.expandvars(config.getoption("htmlpath"))).expanduser()
        self._config = config
        self._folder = page.absolute().with_name(f"{page.stem}-otval")
        self._listed: set[str] = set()
        self._left_out: set[str] = set()
        self._trouble = ""

    @cached_property
    def _titles(self) -> list[str]:
        return list(extensions.columns(self._config))

    def pytest_html_results_table_header(self, cells: list[str]) -> None:
        """Add our columns before the links."""
        columns = [(name.lower(), name) for name in COLUMNS]
        columns += [(f"more{number}", title) for number, title in enumerate(self._titles)]
        cells[2:2] = [f'<th class="sortable" data-column-type="{key}">{escape(title)}</th>' for key, title in columns]

    def pytest_html_results_table_row(self, report: Any, cells: list[str]) -> None:
        """Fill our columns, or leave the row out where there are too many; other tests leave them empty."""
        answer = answer_of(report)
        if answer is None:
            values = dict.fromkeys((*map(str.lower, COLUMNS), *(f"more{n}" for n in range(len(self._titles)))), "")
        elif self._lists(report.nodeid):
            values = self._values(answer)
            cells[:] = [self._with_link(cell, report.nodeid) if "col-links" in cell else cell for cell in cells]
        else:
            del cells[:]
            return
        cells[2:2] = [f'<td class="col-{key}">{escape(value)}</td>' for key, value in values.items()]

    def pytest_html_results_table_html(self, report: Any, data: list[str]) -> None:
        """Show a headline in place of a log, which is one click away."""
        answer = answer_of(report)
        if answer is not None and report.longrepr:
            data[:] = [escape(f"{answer['class']}: {one_line(answer['headline'])}")]

    def pytest_html_results_summary(self, prefix: list[str]) -> None:
        """Write our pages, now that the ledger is complete, and link to them."""
        if PLAN not in self._config.stash or not self._listed:
            return
        from pytest_otval.report.attempts import is_attempt
        from pytest_otval.report.html import write_html
        from pytest_otval.report.results import read_results

        try:
            results = read_results(self._config.stash[OUT])
            write_html(results, self._folder, self._config.getoption("--otval-k"))
            attempts = any(map(is_attempt, results.rows))
        except (OtvalUsageError, OSError) as error:
            self._trouble = f"no pages of ours: {one_line(str(error))}"
            prefix.append(f"<p>{escape(self._trouble)}</p>")
            return
        count = len(self._listed) + len(self._left_out)
        prefix.append(f'<p><a href="{self._link()}">All {count} results of tasks, with filters and logs</a></p>')
        if attempts:
            prefix.append(
                f'<p><a href="{self._link("models.html")}">Attempts of models: rates, plots, trajectories</a></p>'
            )
        if self._left_out:
            prefix.append(f"<p>Only {len(self._listed)} of them are listed and counted on this page.</p>")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say where our pages are."""
        if self._listed:
            where = self._trouble or f"results of tasks: {(self._folder / 'index.html').as_uri()}"
            terminalreporter.write_sep("-", where)

    def _lists(self, nodeid: str) -> bool:
        if nodeid in self._listed:
            return True
        chosen = self._listed if len(self._listed) < MOST_ROWS else self._left_out
        chosen.add(nodeid)
        return chosen is self._listed

    def _values(self, answer: dict[str, Any]) -> dict[str, str]:
        score = answer["score"]
        more = [one_line(answer["columns"].get(title, ""), _CELL_LETTERS) for title in self._titles]
        return {
            "verdict": str(answer["verdict"]),
            "class": str(answer["class"]),
            "score": "" if score is None else f"{score:g}",
            "seconds": f"{answer['seconds'].get('total', 0.0):.2f}",
            "image": one_line(answer["image"]),
            **{f"more{number}": cell for number, cell in enumerate(more)},
        }

    def _with_link(self, cell: str, nodeid: str) -> str:
        row = quote(one_line(nodeid), safe="")
        return cell.replace("</td>", f'<a target="_blank" href="{self._link()}#row={row}">details</a></td>')

    def _link(self, page: str = "index.html") -> str:
        return f"{quote(self._folder.name)}/{page}"
