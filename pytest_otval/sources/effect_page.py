"""The effect of patches as web pages: tables and items, each with the way to its answers before and after.

The page is whole without its script, which only filters. Nothing of a task is markup in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pytest_otval.core import OtvalUsageError
from pytest_otval.report.html import write_html
from pytest_otval.report.results import read_results
from pytest_otval.report.text import one_line
from pytest_otval.sources.effect import COLUMNS, Answer, Effect
from pytest_otval.sources.effect_forms import AFTER, BEFORE
from pytest_otval.sources.effect_tables import Table, attack_table, table

if TYPE_CHECKING:
    from pytest_otval.sources.effect_command import Compared

INDEX, SCRIPT, STYLE = "index.html", "effect.js", "page.css"
MOST_ITEMS = 2000
"""That the page lists, the worst first; all are on the pages of both runs."""
_LETTERS = 300
_WORST_FIRST = ("regressed", "no answer", "flaky", "still broken", "improved", "fixed")


def require_free(folder: Path) -> None:
    """Raise OtvalUsageError for a folder with anything but such pages."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / SCRIPT).is_file())):
        raise OtvalUsageError(f"{folder} holds other files than such pages: give a new folder")


def write_pages(name: str, compared: Compared, folder: Path) -> Path:
    """Write the pages into a folder, those of both runs below it, and return the path of the index. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for form, run in zip((BEFORE, AFTER), compared.runs, strict=True):
        write_html(read_results(run), folder / form)
    for file in (SCRIPT, STYLE):
        (folder / file).write_bytes(files("pytest_otval.report.html").joinpath(file).read_bytes())
    (folder / INDEX).write_text("\n".join(_page(name, compared)) + "\n", "utf-8")
    return folder / INDEX


def _page(name: str, compared: Compared) -> Iterator[str]:
    head = files("pytest_otval.report.html").joinpath("effect.html").read_text("utf-8")
    yield head.replace("TITLE", f"Effect of the patches of {_text(name)}").rstrip()
    facts = {
        "tasks": f"{compared.changed} of {compared.tasks} are changed by patches",
        "stages": ", ".join(compared.stages),
        **{form: str(run) for form, run in zip((BEFORE, AFTER), compared.runs, strict=True)},
    }
    yield f"<dl>{''.join(f'<dt>{key}</dt><dd>{_text(value)}</dd>' for key, value in facts.items())}</dl>"
    yield '<h2>By patch and stage</h2><table id="effect">'
    yield from _rows(table(compared.found))
    yield "</table>"
    if attacks := attack_table(compared.found):
        yield '<h2>Attacks</h2><table id="attacks">'
        yield from _rows(attacks)
        yield "</table>"
    yield from _items([one for one in compared.found if one.became != "unchanged"])
    yield "</body></html>"


def _rows(rows: Table) -> Iterator[str]:
    for number, row in enumerate(rows):
        yield f"<tr>{''.join(_cell(cell, rows[0][at], number == 0) for at, cell in enumerate(row))}</tr>"


def _cell(text: str, column: str, head: bool) -> str:
    if head:
        return f'<th scope="col">{_text(text)}</th>'
    if not text.isdecimal():
        return f"<td>{_text(text)}</td>"
    mark = f" {column.replace(' ', '-')}" if text != "0" else ""
    return f'<td class="number{mark}">{text}</td>'


def _items(found: Sequence[Effect]) -> Iterator[str]:
    shown = sorted(found, key=lambda one: _WORST_FIRST.index(one.became))[:MOST_ITEMS]
    yield "<h2>Items that changed or are bad</h2>"
    if len(found) > MOST_ITEMS:
        yield f"<p>The worst {MOST_ITEMS} of {len(found)}; all are on the pages of both runs.</p>"
    yield '<form id="filters" aria-label="Filters" hidden>'
    yield from _select("became", (name for name in COLUMNS if any(one.became == name for one in shown)))
    yield from _select("stage", dict.fromkeys(one.stage for one in shown))
    yield from _select("patch", sorted({patch for one in shown for patch in one.patches}))
    yield '<label>Task <input id="q" type="search" placeholder="part of its name" autocomplete="off"></label>'
    yield '<span id="count" role="status"></span></form>'
    yield '<table id="items"><thead><tr>'
    for title in ("task", "stage", "patches", "became", "before", "after", "new", "gone"):
        yield f'<th scope="col">{title}</th>'
    yield "</tr></thead><tbody>"
    yield from map(_item, shown)
    yield "</tbody></table>"


def _select(name: str, values: Iterable[str]) -> Iterator[str]:
    options = "".join(f"<option>{_text(value)}</option>" for value in values)
    yield f'<label>{name} <select id="{name}"><option value="">all</option>{options}</select></label>'


def _item(one: Effect) -> str:
    together = "alone" if len(one.patches) == 1 else "together"
    cells = (
        f'<td class="task">{_text(one.task)}</td>',
        f'<td class="stage">{_text(one.stage)}</td>',
        f'<td class="patch" title="{together}">{_text(" + ".join(one.patches))}</td>',
        f'<td class="became {one.became.replace(" ", "-")}">{one.became}</td>',
        f"<td>{_answer(one.before, BEFORE)}</td>",
        f"<td>{_answer(one.after, AFTER)}</td>",
        f"<td>{_text(', '.join(one.new))}</td>",
        f"<td>{_text(', '.join(one.gone))}</td>",
    )
    return f"<tr>{''.join(cells)}</tr>"


def _answer(answer: Answer | None, form: str) -> str:
    if answer is None:
        return "not asked"
    link = f"{form}/index.html#row={quote(one_line(answer.row.id), safe='')}"
    said = "" if answer.row.verdict == "pass" else f"<br>{_text(answer.row.headline)}"
    return f'<a href="{escape(link)}">{_text(str(answer))}</a>{said}'


def _text(text: str) -> str:
    return escape(one_line(text, _LETTERS))
