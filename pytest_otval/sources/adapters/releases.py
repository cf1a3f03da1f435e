"""Pairs of releases of a package: see ``sources.releases``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Strict
from pydantic.dataclasses import dataclass

from pytest_otval.sources.adapters.base import Outcome, Record, RefusalError, convert_all
from pytest_otval.sources.files import Files, SourceError
from pytest_otval.sources.releases.pairs import PINS, Pair, ids_file, load_releases, read_ids
from pytest_otval.sources.releases.task import TEMPLATE, Inputs, read_templates, task_files


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class ReleasePairs:
    """The adapter ``releases``; its source is the folder of fetched source archives and wheels."""

    name: ClassVar[str] = "releases"

    folder: Annotated[Path, Strict(False)] = Path()
    """Has releases.toml, ``ids`` and ``template``."""
    only: tuple[str, ...] | None = None
    """Names of the pairs that are read; all where there are none named."""

    def convert(self, source: Path) -> Iterator[Outcome]:
        """See ``Adapter``."""
        releases = load_releases(self.folder / PINS)
        templates = read_templates(self.folder / TEMPLATE)

        def files(pair: Pair, _: str) -> Files:
            try:
                ids = read_ids(ids_file(self.folder, pair))
                if fault := pair.why_not_the_pinned(ids):
                    raise RefusalError("wrong-field", f"{fault}: `patch.py ids --only {pair.name}` makes its ids again")
                return task_files(Inputs(pair, ids, releases.wheel_archives(pair), source, templates))
            except SourceError as error:
                raise RefusalError("unreadable", str(error)) from None

        return convert_all(Record(pair.name, partial(files, pair)) for pair in releases.named(self.only))
