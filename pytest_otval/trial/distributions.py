"""Python distributions that a phase installed or changed: which files belong to which, as their RECORD says."""

from __future__ import annotations

import csv
import posixpath
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.sandbox.base import Sandbox
from pytest_otval.trial.changed import Change

MAX_RECORDS = 500
_MAX_BYTES = 8 * 1024 * 1024
_INFO = re.compile(r"(?P<site>/.*)/(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._]*[A-Za-z0-9])?)-[^/]*\.dist-info(?:/.*)?")


@dataclass(frozen=True, slots=True)
class Distributions:
    """Distributions that were changed."""

    names: tuple[str, ...]
    """Normalised as on PyPI: lower case, with ``-``."""
    _owned: frozenset[str]
    """Their files, those of ``bin`` too, and their folders right in ``site-packages``."""

    def own(self, path: str) -> bool:
        """Whether a path is a file of one of them, or in a folder of its own."""
        if path in self._owned:
            return True
        found = _INFO.fullmatch(path)
        if found is not None:
            return normal(found["name"]) in self.names
        site, packages, below = path.rpartition("-packages/")
        return bool(packages) and f"{site}{packages}{below.partition('/')[0]}" in self._owned


def normal(name: str) -> str:
    """Return a distribution's name as PyPI compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_records(sandbox: Sandbox, upper: Path, changes: Iterable[Change]) -> dict[str, str]:
    """Return the texts of RECORD files that were written, by path; what cannot be read is left out."""
    paths = [one.path for one in changes if one.kind == "file" and one.path.endswith(".dist-info/RECORD")]
    found = {}
    for path in paths[:MAX_RECORDS]:
        with suppress(OSError):
            found[path] = sandbox.read(upper, path.lstrip("/"), _MAX_BYTES).decode(errors="surrogateescape")
    return found


def distributions(changes: Iterable[Change], records: Mapping[str, str]) -> Distributions:
    """Return the distributions whose ``.dist-info`` was changed."""
    names, owned = set(), set[str]()
    for change in changes:
        match = _INFO.fullmatch(change.path)
        if match is None:
            continue
        names.add(normal(match["name"]))
        for path in _files(match["site"], records.get(change.path, "")):
            owned.add(path)
            top = path.removeprefix(f"{match['site']}/").partition("/")[0]
            if path.startswith(f"{match['site']}/{top}/"):
                owned.add(f"{match['site']}/{top}")
    return Distributions(tuple(sorted(names)), frozenset(owned))


def _files(site: str, record: str) -> Iterable[str]:
    try:
        return [posixpath.normpath(posixpath.join(site, row[0])) for row in csv.reader(record.splitlines()) if row]
    except csv.Error:
        return []
