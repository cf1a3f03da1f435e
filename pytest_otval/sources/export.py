"""A dataset as it is published: tasks that hold what they promise, those that do not, and the evidence for both.

kept.parquet       path, task_binary
archived.parquet   path, task_binary, category (a reason class), reason
verdicts.parquet   a row for each result
dataset.toml       Harbor's manifest, with the digests that Harbor computes
references.json    images and runtimes that the results were had with
README.md          the dataset card
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit

from pytest_otval.core import Conclusion, OtvalUsageError, printable
from pytest_otval.hub import Hub
from pytest_otval.report.results import Results, Row
from pytest_otval.report.text import one_line
from pytest_otval.stages.repeat import interval
from pytest_otval.task.dataset import DATASET_TOML
from pytest_otval.task.digest import DigestError, harbor_digest
from pytest_otval.task.pack import parquet_writer
from pytest_otval.task.source import TaskSource

KEPT, ARCHIVED, VERDICTS, REFERENCES, CARD = (
    "kept.parquet",
    "archived.parquet",
    "verdicts.parquet",
    "references.json",
    "README.md",
)
_COLUMNS = (
    *("id", "task", "stage", "verdict", "reason", "headline", "score", "seconds"),
    *("isolation", "image_key", "image_content", "task_digest", "time"),
)
_MOST_NAMED = 50
"""Tasks that the card names of each class."""


@dataclass(frozen=True, slots=True)
class Fate:
    """Whether a task is kept, and why not."""

    category: str = ""
    """Reason class; empty for one that is kept."""
    reason: str = ""


def fates(rows: Iterable[Row]) -> dict[str, Fate]:
    """Return what becomes of each task that was asked about: it is kept where every answer is a pass or n/a.

    Errors of the machine are no answer, so such a task is neither: it is left out.
    """
    found: dict[str, Fate] = {}
    unknown: set[str] = set()
    for row in rows:
        if not row.task:
            continue
        if row.verdict == "error":
            unknown.add(row.task)
        elif row.verdict not in ("pass", "n/a") and not found.get(row.task, Fate()).category:
            found[row.task] = Fate(row.reason, f"{row.stage}: {one_line(row.headline)}")
        else:
            found.setdefault(row.task, Fate())
    return {task: fate for task, fate in found.items() if task not in unknown}


def export(
    name: str, source: TaskSource, results: Sequence[Results], wanted: Mapping[str, Fate], licence: str, out: Path
) -> dict[str, int]:
    """Write all files into a new folder; return how many tasks were kept and archived.

    Raises OtvalUsageError, Conclusion for a task that cannot be unpacked, OSError.
    """
    if out.exists():
        raise OtvalUsageError(f"{out} is there already: name a new folder")
    missing = [task for task in wanted if not source.has(task)]
    if missing:
        raise OtvalUsageError(f"results name {missing[0]}, which the dataset does not have: run its tasks again")
    part = out.with_name(f".{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        digests = _tasks(source, wanted, part)
        _manifest(name, digests, part)
        rows = [row for one in results for row in one.rows]
        _verdicts(rows, part)
        _references(results, part)
        (part / CARD).write_text("\n".join(card(name, rows, wanted, results, licence)) + "\n")
        part.rename(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    kept = sum(not fate.category for fate in wanted.values())
    return {"kept": kept, "archived": len(wanted) - kept}


def _tasks(source: TaskSource, wanted: Mapping[str, Fate], out: Path) -> dict[str, str]:
    """Write both files of tasks; return Harbor's digests of those that are kept."""
    digests: dict[str, str] = {}
    scratch = out / "scratch"
    with parquet_writer(out / KEPT) as keep, parquet_writer(out / ARCHIVED, ("category", "reason")) as archive:
        for task, fate in sorted(wanted.items()):
            folder = source.folder(task, scratch)
            if fate.category:
                archive(task, folder, fate.category, fate.reason)
            else:
                keep(task, folder)
                digests[task] = _digest(folder)
            if folder.is_relative_to(scratch):
                shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(scratch, ignore_errors=True)
    return digests


def _digest(folder: Path) -> str:
    try:
        return harbor_digest(folder)
    except DigestError as error:
        raise Conclusion("bad-task", f"{folder.name}: {error}") from None


def _manifest(name: str, digests: Mapping[str, str], out: Path) -> None:
    document = tomlkit.document()
    document["dataset"] = {"name": f"otval/{name}"}
    tasks = tomlkit.aot()
    for task, digest in digests.items():
        table = tomlkit.table()
        table["name"], table["digest"] = f"otval/{task}", digest
        tasks.append(table)
    document["tasks"] = tasks
    (out / DATASET_TOML).write_text(tomlkit.dumps(document))


def _verdicts(rows: Sequence[Row], out: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    columns = {("class" if name == "reason" else name): [getattr(row, name) for row in rows] for name in _COLUMNS}
    parquet.write_table(pyarrow.table(columns), out / VERDICTS, compression="zstd")


def _references(results: Iterable[Results], out: Path) -> None:
    images: dict[str, Any] = {}
    runtimes: set[str] = set()
    for line in (line for one in results for line in one.lines()):
        image = line.get("image")
        if image:
            images[image["key"]] = {"content": image["content"], "base": image["base"]}
        runtimes.update(line.get("runtimes", ()))
    facts = {"images": dict(sorted(images.items())), "runtimes": sorted(runtimes)}
    (out / REFERENCES).write_text(json.dumps(facts, indent=1) + "\n")


def card(
    name: str, rows: Sequence[Row], wanted: Mapping[str, Fate], results: Sequence[Results], licence: str
) -> Iterator[str]:
    """Yield the lines of the dataset card: counts, intervals, attacks, isolation, versions, failures, licence."""
    yield from ("---", f"license: {_yaml(licence or 'unknown')}", "tags: [reinforcement-learning, harbor]", "---", "")
    kept = sum(not fate.category for fate in wanted.values())
    yield f"# {name}"
    yield ""
    yield f"{kept} tasks in Harbor's format that were asked, in real containers, and answered as they should, and"
    yield f"{len(wanted) - kept} that did not (`{ARCHIVED}`)."
    yield from ("", "## Evidence", "", "| stage | asked | pass | 95 % interval | n/a |", "|---|---|---|---|---|")
    for stage, by in _by_stage(rows).items():
        asked, passed = by.total() - by["n/a"], by["pass"]
        low, high = interval(passed, asked) if asked else (0.0, 1.0)
        yield f"| {_cell(stage)} | {asked} | {passed} | {low:.1%} to {high:.1%} | {by['n/a']} |"
    attacked = [dict(row.attacks) for row in rows if row.attacks]
    if attacked:
        paid = sum("paid" in cells.values() for cells in attacked)
        yield from ("", f"Attacks that solve nothing were paid on {paid} of {len(attacked)} tasks.")
    levels = Counter(row.isolation for row in rows if row.isolation)
    if levels:
        yield from ("", "Isolation: " + ", ".join(f"{_cell(level)} {count}" for level, count in levels.most_common()))
    yield from ("", "## Known failures", "")
    for category, count in Counter(fate.category for fate in wanted.values() if fate.category).most_common():
        tasks = sorted(task for task, fate in wanted.items() if fate.category == category)
        more = f" and {count - _MOST_NAMED} more" if count > _MOST_NAMED else ""
        yield f"- {_cell(category)}: {', '.join(tasks[:_MOST_NAMED])}{more}"
    if not any(fate.category for fate in wanted.values()):
        yield "None."
    yield from ("", "## Made with", "")
    for one in results:
        versions = ", ".join(f"{tool} {number}" for tool, number in sorted(one.facts.get("versions", {}).items()))
        yield f"- run {_cell(one.run.name)}: {_cell(versions)}, flavour {_cell(str(one.facts.get('flavour', '')))}"
    yield from ("", "## Licence", "", _cell(licence or "Not known: ask where the tasks come from."))


def _by_stage(rows: Iterable[Row]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for row in rows:
        if row.task and row.verdict != "error":
            found.setdefault(row.stage, Counter())[row.verdict] += 1
    return found


def _cell(text: str) -> str:
    """Return a text of a task as Markdown that says just that."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>()#+!|" else char for char in printable(text))


def _yaml(text: str) -> str:
    return json.dumps(printable(text).lower())


def push(folder: Path, repository: str, message: str) -> None:
    """Put the files of an export into a dataset repository of the hub. Raises as ``hub.Hub`` does."""
    Hub(repository).upload({path.name: path for path in sorted(folder.iterdir())}, message)
