"""Finding further pairs: successive releases of a package of which the new one's suite tells the codes apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import ValidationError

from pytest_otval.core import NAME, printable
from pytest_otval.sources.fetch import Archive, IndexedRelease, PackageIndex, fetch_files, read_fetched
from pytest_otval.sources.files import Files, SourceError, read_sdist
from pytest_otval.sources.releases.laboratory import Laboratory, Runs, SortedIds
from pytest_otval.sources.releases.layout import Layout, find_layout
from pytest_otval.sources.releases.needs import (
    PYTHON,
    Metadata,
    licence_of,
    parsed_requirement,
    requirements_of,
    undeclared,
)
from pytest_otval.sources.releases.pairs import Pair, PinnedFile, Release, Releases, ids_digest
from pytest_otval.sources.releases.task import Inputs
from pytest_otval.sources.releases.wheels import Wheel, modules_of, resolve

SECONDS = 300.0
"""For one run of a suite: a pair is to be cheap."""
_UNKNOWN = ("not known yet",)
"""Of a pair that was not run: it has to have fail_to_pass ids."""
_ERROR = re.compile(r"^E  +(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Wanted:
    """How pairs are looked for."""

    last: int
    """How many pairs of a package, the newest ones."""
    repeats: int
    """How often a suite is run on each code."""
    extra: tuple[Requirement, ...] = ()
    """Requirements of suites that no release declares."""
    deselect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A pair that holds."""

    pair: Pair
    pass_to_pass: tuple[str, ...]
    """Less those left out."""
    wheels: Mapping[str, PinnedFile]
    """That releases.toml does not have yet."""


@dataclass(frozen=True, slots=True)
class NotFound:
    """Two releases that make no pair."""

    name: str
    why: str
    """One printable line."""


class Miner:
    """Looks for pairs; what it downloads is kept in ``folder``."""

    def __init__(
        self,
        releases: Releases,
        templates: Mapping[str, str],
        index: PackageIndex,
        folder: Path,
        lab: Laboratory,
        wanted: Wanted,
    ) -> None:
        self._releases = releases
        self._templates = templates
        self._index = index
        self._folder = folder
        self._lab = lab
        self._wanted = wanted

    def mine(self, package: str) -> Iterator[Found | NotFound]:
        """Yield what the newest pairs of a package came to, from old to new, but for those that are there."""
        try:
            listed = self._index.releases(package)
        except SourceError as error:
            yield NotFound(package, printable(str(error)))
            return
        if len(listed) < 2:
            yield NotFound(package, "the package index has fewer than two releases with a source archive")
        there = {pair.name for pair in self._releases.pair}
        for old, new in list(pairwise(listed))[-self._wanted.last :]:
            name = f"{package}-{new.version}"
            if name in there:
                yield NotFound(name, "is there already")
                continue
            try:
                yield self._found(package, old, new)
            except SourceError as error:
                yield NotFound(printable(name), printable(str(error)))

    def _found(self, package: str, old: IndexedRelease, new: IndexedRelease) -> Found:
        _check_python(new)
        fetch_files([old.sdist, new.sdist], self._folder, self._index)
        files = read_sdist(new.sdist.file, read_fetched(new.sdist, self._folder))
        metadata = Metadata(files)
        layout = find_layout(package, files)
        wheels = self._wheels(files, metadata, layout)
        draft = self._draft(package, old, new, licence_of(metadata), layout, wheels)
        archives = [wheel.archive for wheel in wheels]
        inputs = Inputs(draft, (), archives, self._folder, self._templates)
        found = sound(self._lab.run(inputs, self._wanted.repeats, SECONDS))
        pair = with_ids(draft, found, self._wanted.repeats)
        pins = {wheel.pin: PinnedFile(file=wheel.archive.file, sha256=wheel.archive.sha256) for wheel in wheels}
        new_pins = {pin: file for pin, file in pins.items() if pin not in self._releases.wheels}
        return Found(pair, found.pass_to_pass, new_pins)

    def _wheels(self, files: Files, metadata: Metadata, layout: Layout) -> list[Wheel]:
        requirements = [*requirements_of(metadata, files), parsed_requirement("pytest"), *self._wanted.extra]
        wheels = [self._pinned(wheel) for wheel in resolve(requirements, self._releases.wheels)]
        archives = [wheel.archive for wheel in wheels]
        fetch_files(archives, self._folder, self._index)
        modules = frozenset().union(*(modules_of(one.file, read_fetched(one, self._folder)) for one in archives))
        if missing := undeclared(files, layout.tests, modules):
            raise SourceError(
                f"its tests import {', '.join(missing)}, which nothing declared brings: --with tells what does"
            )
        return wheels

    def _pinned(self, wheel: Wheel) -> Wheel:
        """Return the wheel as releases.toml has it, if it does: an index may have several of one version."""
        known = self._releases.wheels.get(wheel.pin)
        if known is None:
            return wheel
        return Wheel(wheel.pin, Archive(project=wheel.archive.project, file=known.file, sha256=known.sha256))

    def _draft(
        self,
        package: str,
        old: IndexedRelease,
        new: IndexedRelease,
        licence: str,
        layout: Layout,
        wheels: Sequence[Wheel],
    ) -> Pair:
        try:
            pair = Pair(
                package=package,
                licence=licence,
                source_root=layout.source_root,
                code=layout.code,
                tests=layout.tests,
                suite=layout.suite,
                deselect=self._wanted.deselect,
                old=Release(version=old.version, file=old.sdist.file, sha256=old.sdist.sha256),
                new=Release(version=new.version, file=new.sdist.file, sha256=new.sdist.sha256),
                wheels=tuple(wheel.pin for wheel in wheels),
                fail_to_pass=_UNKNOWN,
                n_pass_to_pass=0,
                pass_to_pass_sha256="",
            )
        except ValidationError as error:
            first = error.errors()[0]
            raise SourceError(f"{first['loc'][0]}: {first['msg']}") from None
        if not NAME.fullmatch(pair.name):
            raise SourceError("its name cannot be a task's")
        return pair


def _check_python(release: IndexedRelease) -> None:
    try:
        fits = SpecifierSet(release.requires_python).contains(PYTHON)
    except InvalidSpecifier:
        fits = True
    if not fits:
        raise SourceError(f"it needs Python {printable(release.requires_python)}, the images have {PYTHON}")


def sound(runs: Runs) -> SortedIds:
    """Return the ids of runs that make a pair. Raises SourceError where they make none."""
    found = runs.sort()
    last = runs.new[-1]
    if not last.passed:
        error = _ERROR.search(last.output)
        why = printable(" ".join(error[1].split()))[:200] if error else "it collects nothing"
        raise SourceError(f"no test of its suite passes on its own code: {why}")
    if network := next((run.wants_network for run in runs.new if run.wants_network), ""):
        raise SourceError(f"its suite needs the network, or --deselect: {network}")
    if not found.fail_to_pass:
        raise SourceError("no test fails on the old code and passes on the new one")
    if not found.pass_to_pass:
        raise SourceError("no test passes on the old code: it does not run here")
    return found


def with_ids(draft: Pair, found: SortedIds, repeats: int) -> Pair:
    """Return the pair with what its suite's runs said; flaky ids are named as left out."""
    both = (*found.pass_to_pass, *found.flaky_pass_to_pass)
    reason = f"its outcome differs between {repeats} runs"
    ids = {
        "fail_to_pass": sorted((*found.fail_to_pass, *found.flaky_fail_to_pass)),
        "n_pass_to_pass": len(both),
        "pass_to_pass_sha256": ids_digest(both),
        "left_out": [{"id": one, "reason": reason} for one in found.flaky],
    }
    return Pair.model_validate({**draft.model_dump(), **ids})
