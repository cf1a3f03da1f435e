"""All questions about what an image gives away, and what a task allows of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_otval.checks.allow import DatasetAllows, with_allowed
from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.elsewhere import ELSEWHERE
from pytest_otval.checks.registry import Place
from pytest_otval.checks.version import package_version
from pytest_otval.core import Finding, printable
from pytest_otval.images.contents import Contents
from pytest_otval.images.model import Files
from pytest_otval.leaks.expected import values_in
from pytest_otval.leaks.files import gold_lines, rewards_there, solutions_in, stale_bytecode, tests_in
from pytest_otval.leaks.gold import gold_of
from pytest_otval.leaks.history import search
from pytest_otval.leaks.objects import TooLargeError
from pytest_otval.task.load import Task
from pytest_otval.task.packed.unpack import DamagedError

MAX_REPOSITORIES = 20
NOT_READ = "image-not-read"
SOURCES = ("images/contents.py", "images/lower.py", "leaks")
"""What of our package findings come from, beside the checks."""


def scan_version() -> str:
    """Return a digest that changes whenever something else may be found."""
    return package_version(SOURCES)


def scan(task: Task, files: Files, base: Files, allows: DatasetAllows, scratch: Path) -> tuple[Finding, ...]:
    """Return what an image gives away, sorted by path, line and id; with what is allowed, and why.

    ``base`` are the files of the image that this one was built from: what stands there says nothing of the task.
    Nothing in an image makes it raise. ``scratch`` takes a copy of a repository's packs for a moment.
    """
    context = CheckContext(task)
    found = {_finding(check, place) for check, place in _all(context, files, base, scratch)}
    told = with_allowed(context, found, {finding.check for finding in found}, allows, at_build=True)
    return tuple(sorted(told, key=lambda one: (one.path, one.line or 0, one.check, one.message)))


def _finding(check: str, place: Place) -> Finding:
    severity = ELSEWHERE[check].severity if place.severity is None else place.severity
    return Finding(check, severity, printable(place.message), printable(place.path), place.line, ELSEWHERE[check].fix)


def _all(context: CheckContext, files: Files, base: Files, scratch: Path) -> Iterator[tuple[str, Place]]:
    about = "environment/Dockerfile" if context.file("environment/Dockerfile") is not None else "task.toml"
    if files[0].suffix == ".sif":
        yield NOT_READ, Place(about, "a SIF file is not looked into")
        return
    with Contents(files, base) as contents:
        if contents.fault:
            yield NOT_READ, Place(about, contents.fault)
            return
        try:
            yield from _questions(context, contents, about, scratch)
        except (OSError, DamagedError) as error:
            yield NOT_READ, Place(about, f"its packed file cannot be read: {error}")


def _questions(context: CheckContext, contents: Contents, about: str, scratch: Path) -> Iterator[tuple[str, Place]]:
    yield from (("image-has-tests", place) for place in tests_in(context, contents))
    yield from (("image-has-solution", place) for place in solutions_in(context, contents))
    yield from (("image-stale-pyc", place) for place in stale_bytecode(context, contents))
    yield from (("image-reward-there", place) for place in rewards_there(context, contents))
    places, read_all = values_in(context, contents)
    yield from (("image-has-expected", place) for place in places)
    if not read_all:
        yield NOT_READ, Place(about, "it has more text than is looked into for values that the tests expect")
    gold = gold_of(context)
    if not gold.files:
        return
    lines = gold_lines(contents, gold)
    yield from (("image-has-gold-lines", place) for place in lines.places)
    if not lines.read_all:
        yield NOT_READ, Place(about, "it has more text than is looked into for lines of the solution's patches")
    folders = sorted({folder for _, index in contents.numbered() for folder in index.repositories})
    for folder in folders[:MAX_REPOSITORIES]:
        try:
            for found in search(contents, folder, gold, scratch):
                hit = found.hit
                if (hit.gold.patch, hit.gold.path) not in lines.patches:
                    what = f"{found.where} in /{folder} has these lines" + (f" in {found.path}" if found.path else "")
                    yield "image-git-history", Place(hit.gold.patch, what, hit.run.line)
        except TooLargeError as error:
            yield NOT_READ, Place(about, f"the repository /{folder} was not looked into as a whole: {error}")
