"""``python -m pytest_otval report``: a run's reports, made again from its ledger, and what changed between two."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, TextIO

from pytest_otval.core import OtvalUsageError
from pytest_otval.ledger import find_run
from pytest_otval.report.results import Results, read_results
from pytest_otval.report.summary import summarise, summary_lines
from pytest_otval.report.text import Style, Text, one_line

DIFF = "diff"

_MOST_COMPLAINTS = 5

_FILES = ("html", "junit", "sarif", "attempts", "reviews")
"""Arguments that name what is written of one run."""

_COLOURS: dict[Style, str] = {"": "", "title": "bold", "good": "green", "bad": "red", "warn": "yellow"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="run folder, or `latest`; or: diff RUN RUN, for what changed"
    )
    parser.add_argument("--html", metavar="DIR", help="write web pages into this folder")
    parser.add_argument("--junit", metavar="FILE", help="write junit XML")
    parser.add_argument("--sarif", metavar="FILE", help="write the findings of static as SARIF 2.1.0")
    parser.add_argument("--json", metavar="FILE", help="write what is told as JSON; - is standard output")
    parser.add_argument("--attempts", metavar="FILE", help="write a row for each attempt of a model, as Parquet")
    parser.add_argument(
        "--export", metavar="FILE", help="write the attempts' conversations for training, as JSON lines"
    )
    parser.add_argument("--reviews", metavar="FILE", help="write the reviews of a judge, as JSON lines")
    parser.add_argument("--harbor", metavar="DIR", help="write a job folder that `harbor view` opens")
    parser.add_argument(
        "--attacks", action="store_true", help="show what attacks came to, by level; takes several RUNs"
    )
    parser.add_argument("--select", metavar="EXPR", help="only results for which this holds, as in docs/reports.md")


def run_report(arguments: argparse.Namespace) -> int:
    """Carry out the command and return its exit status: 1 where not all that was to be exported could be.

    Raises OtvalUsageError.
    """
    words = arguments.runs
    if words[0] == DIFF and len(words) > 1:
        return _diff(words[1:], arguments)
    if arguments.attacks:
        return _attacks(words, arguments)
    if len(words) != 1:
        raise OtvalUsageError(
            "report takes one RUN; `report diff RUN RUN` takes two, `report --attacks RUN ...` any number"
        )
    results = _results(words[0], arguments)
    if arguments.json != "-":
        _show(summary_lines(summarise(results.rows), results.run / "ledger", _planned(results, arguments)))
    _write_pages(results, arguments)
    _write_json(arguments.json, {"run": dict(results.facts)}, "results", results.lines())
    return _export(results, arguments)


def _write_pages(results: Results, arguments: argparse.Namespace) -> None:
    if arguments.html:
        from pytest_otval.report.html import write_html

        with _writing(arguments.html):
            print(
                f"html: {write_html(results, Path(arguments.html), _planned(results, arguments))}",
                file=_beside(arguments),
            )
    if arguments.junit:
        from pytest_otval.report.junit import write_junit

        with _writing(arguments.junit):
            write_junit(results, Path(arguments.junit))
    if arguments.sarif:
        from pytest_otval.report.sarif import write_sarif

        with _writing(arguments.sarif):
            count = write_sarif(results, Path(arguments.sarif))
            print(f"sarif: {count} findings in {arguments.sarif}", file=_beside(arguments))
    if arguments.attempts:
        from pytest_otval.llm.attempts import write_attempts
        from pytest_otval.report.attempts import attempts_of

        with _writing(arguments.attempts):
            write_attempts(Path(arguments.attempts), attempts_of(results))
    if arguments.reviews:
        from pytest_otval.report.reviews import write_reviews

        with _writing(arguments.reviews):
            count = write_reviews(results, Path(arguments.reviews))
            print(f"reviews: {count} in {arguments.reviews}", file=_beside(arguments))


def _export(results: Results, arguments: argparse.Namespace) -> int:
    status = _export_messages(results, arguments) if arguments.export else 0
    if not arguments.harbor:
        return status
    from pytest_otval.report.harbor import export

    if arguments.select:
        raise OtvalUsageError("--harbor exports a whole run: leave out --select")
    with _writing(arguments.harbor), redirect_stdout(_beside(arguments)):
        return max(status, export(results.run, Path(arguments.harbor)))
    raise AssertionError("an error of writing is raised")


def _export_messages(results: Results, arguments: argparse.Namespace) -> int:
    from pytest_otval.report.messages import export_messages

    with _writing(arguments.export):
        exported = export_messages(results, Path(arguments.export))
        print(f"export: {exported.conversations} conversations in {arguments.export}", file=_beside(arguments))
        for complaint in exported.complaints[:_MOST_COMPLAINTS]:
            print(f"not exported: {one_line(complaint)}", file=sys.stderr)
        if len(exported.complaints) > _MOST_COMPLAINTS:
            print(f"and {len(exported.complaints) - _MOST_COMPLAINTS} more", file=sys.stderr)
        return 1 if exported.complaints else 0
    raise AssertionError("an error of writing is raised")


def _diff(words: list[str], arguments: argparse.Namespace) -> int:
    from pytest_otval.report.diff import change_lines, compare
    from pytest_otval.report.rate_diff import rate_changes, rate_lines

    if len(words) != 2:
        raise OtvalUsageError("report diff takes two runs: report diff BEFORE AFTER")
    _only_json("report diff", arguments)
    before, after = (_results(word, arguments) for word in words)
    changes = compare(before.rows, after.rows)
    rates = rate_changes(before.rows, after.rows)
    if arguments.json != "-":
        _show(change_lines(changes))
        _show(rate_lines(rates))
    about = {"before": str(before.run), "after": str(after.run), "rates": [rate.as_dict() for rate in rates]}
    _write_json(arguments.json, about, "changes", (change.as_dict() for change in changes))
    return 0


def _attacks(words: list[str], arguments: argparse.Namespace) -> int:
    from pytest_otval.report.matrix import matrix_of, table_lines

    _only_json("report --attacks", arguments)
    matrix = matrix_of(row for word in words for row in _results(word, arguments).rows)
    if not matrix.counts:
        raise OtvalUsageError(f"no result of {', '.join(words)} tells of attacks: run pytest with -m adversary")
    if arguments.json != "-":
        _show(map(Text, table_lines(matrix)))
    if arguments.json:
        with _writing(arguments.json), _opened(arguments.json) as file:
            json.dump(matrix.as_dict(), file, indent=1)
            file.write("\n")
    return 0


def _only_json(what: str, arguments: argparse.Namespace) -> None:
    if any(getattr(arguments, name) for name in (*_FILES, "harbor", "export")):
        raise OtvalUsageError(f"{what} knows --select and --json only")


def _planned(results: Results, arguments: argparse.Namespace) -> int | None:
    """Return how many attempts each task was to have of each model; of selected results nobody planned a number."""
    from pytest_otval.report.attempts import planned_attempts

    return None if arguments.select else planned_attempts(results.facts)


def results_of(word: str) -> Results:
    """Return the results of a run folder, or of the ``latest`` run. Raises OtvalUsageError."""
    run = find_run(word)
    try:
        return read_results(run)
    except OSError as error:
        raise OtvalUsageError(f"{error.filename or run} cannot be read: {error.strerror}") from None


def _results(word: str, arguments: argparse.Namespace) -> Results:
    results = results_of(word)
    if arguments.select:
        from pytest_otval.report.select import select

        results = results.where(select(arguments.select, results.rows))
        if not results.rows:
            raise OtvalUsageError(f"--select {arguments.select!r}: no result of {results.run} is selected")
    return results


def _show(lines: Iterable[Text]) -> None:
    from rich.console import Console
    from rich.text import Text as Coloured

    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Coloured(line.text, style=_COLOURS[line.style]))


def _beside(arguments: argparse.Namespace) -> TextIO:
    """Return where remarks go: standard output may be the JSON."""
    return sys.stderr if arguments.json == "-" else sys.stdout


def _write_json(target: str | None, about: dict[str, Any], name: str, entries: Iterator[dict[str, Any]]) -> None:
    """Write an object with a list, an entry a line, one entry in memory at a time."""
    if not target:
        return
    with _writing(target), _opened(target) as file:
        head = json.dumps(about)[1:-1]
        file.write(f'{{{head},\n"{name}": [')
        for number, entry in enumerate(entries):
            file.write(",\n" if number else "\n")
            file.write(json.dumps(entry))
        file.write("\n]}\n")


@contextmanager
def _opened(target: str) -> Iterator[TextIO]:
    if target == "-":
        yield sys.stdout
    else:
        with Path(target).open("w") as file:
            yield file


@contextmanager
def _writing(target: str | None) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        # The reader has seen enough; Python would complain again when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise OtvalUsageError(f"{error.filename or target} cannot be written: {error.strerror}") from None
