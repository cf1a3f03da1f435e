"""A dataset as it is published: tasks that hold what they promise, those that do not, and the evidence for both.

README.md                     the dataset card
dataset.toml                  Harbor's manifest with its digests, and the settings under which tasks were asked
data/kept.parquet             path, task_binary, digest, licence, patches
archived/archived.parquet     the same, and category (a reason class) and reason
evidence/verdicts.parquet     a row for each result
evidence/references.json      images and runtimes that the results were had with
evidence/provenance.jsonl     what prepare wrote down

It is a dataset itself: its tasks are those of data/, and pytest takes it as it is. Harbor reads tasks that are folders
beside dataset.toml, so those are another folder.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_otval.core import OtvalUsageError, printable
from pytest_otval.hub import Hub
from pytest_otval.report.results import Results, Row
from pytest_otval.sources.adapters.base import Refused
from pytest_otval.sources.card import card
from pytest_otval.sources.fates import Fate
from pytest_otval.sources.manifest import write_manifest
from pytest_otval.sources.origin import Source
from pytest_otval.sources.provenance import PROVENANCE, read_prepared
from pytest_otval.sources.published import Published, published
from pytest_otval.task.dataset import DATASET_TOML
from pytest_otval.task.pack import parquet_writer
from pytest_otval.task.source import TaskSource

CARD = "README.md"
KEPT, ARCHIVED = "data/kept.parquet", "archived/archived.parquet"
VERDICTS, REFERENCES, EVIDENCE = "evidence/verdicts.parquet", "evidence/references.json", "evidence"
_OF_TASKS = ("digest", "licence", "patches")
_COLUMNS = (
    *("id", "task", "stage", "verdict", "reason", "headline", "score", "seconds"),
    *("isolation", "image_key", "image_content", "task_digest", "time"),
)


@dataclass(frozen=True, slots=True)
class Export:
    """What is published of which dataset."""

    name: str
    dataset: Path
    """With its dataset.toml."""
    source: TaskSource
    """Its tasks, as they are prepared."""
    results: Sequence[Results]
    """Of this dataset alone."""
    wanted: Mapping[str, Fate]
    origin: Source

    @property
    def rows(self) -> list[Row]:
        """All results."""
        return [row for one in self.results for row in one.rows]


def export(what: Export, out: Path, folders: Path | None = None, bundles: Sequence[Path] = ()) -> list[Published]:
    """Write all files into a new folder and return what was published.

    ``folders`` is a new folder for a dataset as Harbor reads it; ``bundles`` have files of images and runtimes, which
    are named. Raises OtvalUsageError, Conclusion for a task that cannot be unpacked.
    """
    missing = [task for task in what.wanted if not what.source.has(task)]
    if missing:
        raise OtvalUsageError(f"results name {missing[0]}, which the dataset does not have: run its tasks again")
    with ExitStack() as stack:
        part = stack.enter_context(_new(out))
        harbor = stack.enter_context(_new(folders)) if folders else None
        tasks = _tasks(what, part, harbor)
        kept = [one for one in tasks if one.kept]
        write_manifest(what.dataset, what.name, kept, part)
        if harbor:
            shutil.copyfile(part / DATASET_TOML, harbor / DATASET_TOML)
        (part / EVIDENCE).mkdir()
        _verdicts(what.rows, part / VERDICTS)
        references = _references(what.results, bundles)
        (part / REFERENCES).write_text(json.dumps(references, indent=1) + "\n")
        refused = _provenance(what.source.path, part / EVIDENCE)
        lines = card(what.name, what.rows, tasks, what.results, what.origin, refused, references)
        (part / CARD).write_text("\n".join(lines) + "\n")
    return tasks


@contextmanager
def _new(out: Path) -> Iterator[Path]:
    if out.exists():
        raise OtvalUsageError(f"{out} is there already: name a new folder")
    part = out.with_name(f".{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        yield part
        part.rename(out)
    except OSError as error:
        raise OtvalUsageError(f"{out} cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _tasks(what: Export, out: Path, harbor: Path | None) -> list[Published]:
    """Write both files of tasks, and into ``harbor`` folders of those that are kept."""
    asked: dict[str, set[str]] = defaultdict(set)
    for row in what.rows:
        if row.task_digest:
            asked[row.task].add(row.task_digest)
    for file in (KEPT, ARCHIVED):
        (out / file).parent.mkdir()
    found = []
    scratch = out / "scratch"
    with (
        parquet_writer(out / KEPT, _OF_TASKS) as keep,
        parquet_writer(out / ARCHIVED, (*_OF_TASKS, "category", "reason")) as archive,
    ):
        for name, fate in sorted(what.wanted.items()):
            folder = what.source.folder(name, scratch)
            one = published(name, folder, fate)
            if asked[name] - {one.digest}:
                raise OtvalUsageError(f"results are of other files of {printable(name)}: run its tasks again")
            facts = (one.digest, one.licence, ", ".join(one.patches))
            if one.kept:
                keep(name, folder, *facts)
            else:
                archive(name, folder, *facts, fate.category, fate.reason)
            if harbor and one.kept:
                _copy(folder, harbor / name)
            if folder.is_relative_to(scratch):
                shutil.rmtree(folder, ignore_errors=True)
            found.append(one)
    shutil.rmtree(scratch, ignore_errors=True)
    return found


def _copy(folder: Path, target: Path) -> None:
    try:
        shutil.copytree(folder, target, symlinks=True)
    except shutil.Error:
        raise OtvalUsageError(f"{printable(target.name)} has what is no file: leave out --folders") from None


def _verdicts(rows: Sequence[Row], file: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    columns = {("class" if name == "reason" else name): [getattr(row, name) for row in rows] for name in _COLUMNS}
    parquet.write_table(pyarrow.table(columns), file, compression="zstd")


def _references(results: Iterable[Results], bundles: Sequence[Path]) -> dict[str, Any]:
    """Return images and runtimes by their digests, each with its file and the bundles that have it."""
    images: dict[str, Any] = {}
    runtimes: dict[str, Any] = {}

    def file(name: str) -> dict[str, Any]:
        return {"file": name, "bundles": [bundle.name for bundle in bundles if (bundle / name).is_file()]}

    for line in (line for one in results for line in one.lines()):
        image = line.get("image")
        if image:
            images[image["key"]] = {"content": image["content"], "base": image["base"], **file(f"{image['key']}.sqfs")}
        for runtime in line.get("runtimes", ()):
            id, _, checksum = runtime.partition("@sha256:")
            runtimes[id] = {"sha256": checksum, **file(f"{checksum}.sqfs")}
    return {"images": dict(sorted(images.items())), "runtimes": dict(sorted(runtimes.items()))}


def _provenance(dataset: Path, out: Path) -> list[Refused]:
    """Take along what prepare wrote down, and return the records that gave no task; none where it did not."""
    prepared = read_prepared(dataset)
    if prepared is None:
        return []
    shutil.copyfile(dataset / PROVENANCE, out / PROVENANCE)
    return prepared.refused


def push(folder: Path, repository: str, message: str, private: bool) -> None:
    """Put the files of an export into a dataset repository of the hub, all in one commit or none.

    Raises as ``hub.Hub`` does.
    """
    files = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    Hub(repository, private=private).upload(files, message)
