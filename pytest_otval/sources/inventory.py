"""The inventory of datasets: made from their folders, ``inventory.toml``, and the records of their validation.

It depends on files of the repository alone, so it is the same in every clone.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import tomli
from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_otval.core import NAME, OtvalUsageError
from pytest_otval.report.markdown import literal, table
from pytest_otval.sources.upstream import Pin, load_pins
from pytest_otval.sources.validated import KNOWN_BAD, Validated, read_record
from pytest_otval.stages.spec import STAGES
from pytest_otval.task.dataset import DATASET_TOML, MAX_TOML_BYTES, Accepted, DatasetSettings, KnownBad, load_dataset
from pytest_otval.task.reading import NotReadableError, read_regular

INVENTORY = "inventory.toml"
README = "README.md"
MARK = "inventory"
NOT_VALIDATED = "not validated here"
_STATUS = re.compile(r"^## Status\s+(.+?)(?:\n\s*\n|\Z)", re.M | re.S)
"""The first paragraph below this heading of a dataset's README."""
_HEAD = ("dataset", "source", "licence", "tasks", "last contract", "answers, by stage", "open faults")
_HEAD_OF_OTHERS = ("set", "priority", "source", "tasks", "why", f"{NOT_VALIDATED}, because")


class Entry(BaseModel):
    """A table of inventory.toml: a set that was not begun, or what the folder of one does not say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str = ""
    licence: str = ""
    published: int | None = None
    """Tasks, as others tell."""
    priority: Literal[1, 2, 3] = 3
    """1 is first."""
    why: str = ""
    """What makes it worth the work."""
    missing: str = ""
    """Why nothing was validated."""


def read_entries(datasets: Path) -> Mapping[str, Entry]:
    """Return the tables of inventory.toml, by name. Raises OtvalUsageError."""
    file = datasets / INVENTORY
    try:
        tables = tomli.loads(read_regular(file, MAX_TOML_BYTES).decode())
        return {name: Entry.model_validate(entry) for name, entry in tables.items()}
    except FileNotFoundError:
        raise OtvalUsageError(f"there is no {file}: run it in the checkout, or name its folder `datasets`") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise OtvalUsageError(f"{file}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (OSError, NotReadableError, ValueError) as error:
        raise OtvalUsageError(f"{file} cannot be read: {error}") from None


def dataset_folders(datasets: Path) -> list[Path]:
    """Return the folders that have a dataset.toml, by name."""
    return sorted(file.parent for file in datasets.glob(f"*/{DATASET_TOML}") if not file.parent.name.startswith("."))


def inventory_lines(datasets: Path, records: Mapping[str, Validated] | None = None) -> Iterator[str]:
    """Yield the lines of the inventory in Markdown; ``records`` stand for those that lie beside dataset.toml.

    Raises OtvalUsageError where inventory.toml or a record cannot be read.
    """
    entries = read_entries(datasets)
    folders = dataset_folders(datasets)
    rows = []
    for folder in folders:
        record = (records or {}).get(folder.name) or read_record(folder)
        rows.append(_row(folder, entries.get(folder.name, Entry()), record))
    yield from ("", *table([_HEAD, *rows]), "", "## Not begun", "")
    names = {folder.name for folder in folders}
    others = [(name, entry) for name, entry in entries.items() if name not in names]
    rows_of_others = [_row_of_other(name, entry) for name, entry in sorted(others, key=lambda one: one[1].priority)]
    yield from (*table([_HEAD_OF_OTHERS, *rows_of_others]), "")


def _row(folder: Path, entry: Entry, record: Validated | None) -> tuple[str, ...]:
    manifest = _manifest(folder)
    source = manifest.get("source")
    table_of_source = source if isinstance(source, dict) else {}
    return (
        _name(folder),
        literal(entry.source or _origin(table_of_source)),
        literal(entry.licence or str(table_of_source.get("licence", "")) or "not known"),
        _tasks(entry, record),
        _contract(record),
        _answers(folder, entry, record),
        _faults(_settings(folder), record),
    )


def _name(folder: Path) -> str:
    linked = NAME.fullmatch(folder.name) and (folder / README).is_file()
    return f"[{literal(folder.name)}]({folder.name}/{README})" if linked else literal(folder.name)


def _row_of_other(name: str, entry: Entry) -> tuple[str, ...]:
    return (
        literal(name),
        str(entry.priority),
        literal(entry.source),
        _tasks(entry, None),
        literal(entry.why),
        literal(entry.missing),
    )


def _manifest(folder: Path) -> Mapping[str, Any]:
    """Return the [otval] table; what cannot be read is told by the static stage."""
    try:
        ours = tomli.loads(read_regular(folder / DATASET_TOML, MAX_TOML_BYTES).decode()).get("otval", {})
    except (OSError, NotReadableError, ValueError):
        return {}
    return ours if isinstance(ours, dict) else {}


def _origin(source: Mapping[str, Any]) -> str:
    """Return where a source is and what of it, for any kind that has an address and a pin."""
    if source.get("kind") == "upstream":
        pin = _pins().get(str(source.get("name", "")))
        source = {"url": pin.url, "commit": pin.commit} if pin else source
    where = next((str(source[key]) for key in ("repository", "url", "path", "name", "kind") if source.get(key)), "")
    which = next((str(source[key])[:12] for key in ("revision", "commit", "sha256") if source.get(key)), "")
    return f"{where} at {which}" if which else where


def _pins() -> Mapping[str, Pin]:
    with resources.as_file(resources.files("pytest_otval") / "data" / "upstream.toml") as file:
        return load_pins(file)


def _tasks(entry: Entry, record: Validated | None) -> str:
    if record is not None:
        return f"{record.tasks:,}" + (f" ({record.refused:,} refused)" if record.refused else "")
    return f"{entry.published:,} as published" if entry.published is not None else "not known"


def _contract(record: Validated | None) -> str:
    if record is None or record.contract is None:
        return "none"
    contract = record.contract
    outcome = f"{contract.run}: {contract.expected} of {contract.items} as expected" if contract.run else "not run"
    return literal(f"{contract.file}, {outcome}")


def _answers(folder: Path, entry: Entry, record: Validated | None) -> str:
    stages = record.stages if record is not None else {}
    told = [_stage(stage, counts) for stage, counts in stages.items()]
    parts = [f"{', '.join(told)} ({record.asked})"] if record is not None and told else []
    if missing := _not_asked(stages):
        what = f"{', '.join(missing)} {NOT_VALIDATED}" if told else NOT_VALIDATED
        why = _status(folder) or entry.missing or "nothing was asked yet"
        parts.append(why if NOT_VALIDATED in why.lower() else f"{what}: {why}")
    return literal("; ".join(parts))


def _not_asked(stages: Collection[str]) -> list[str]:
    """Return the stages that run by default and were not asked."""
    return [stage.name for stage in STAGES if stage.by_default and stage.name not in stages]


def _stage(stage: str, counts: Mapping[str, int]) -> str:
    asked = sum(counts.values()) - counts.get("n/a", 0)
    others = [f"{counts[kind]} {kind}" for kind in ("error", "blocked", KNOWN_BAD, "n/a") if counts.get(kind)]
    more = f" ({', '.join(others)})" if others else ""
    return f"{stage} {counts.get('pass', 0)}/{asked}{more}"


def _status(folder: Path) -> str:
    """Return what a dataset's README says under ``## Status``, without its emphasis."""
    try:
        text = read_regular(folder / README, MAX_TOML_BYTES).decode(errors="replace")
    except (OSError, NotReadableError):
        return ""
    found = _STATUS.search(text)
    return " ".join(found[1].replace("**", "").replace("`", "").split()) if found else ""


def _settings(folder: Path) -> DatasetSettings:
    """Return the settings with what has expired, too, so that the inventory is the same on every day."""
    return load_dataset(folder, datetime.date.min).settings


def _faults(settings: DatasetSettings, record: Validated | None) -> str:
    told = [
        *(_recorded("known bad", settings.known_bad)),
        *(_recorded("accepted attacks", settings.accepted)),
    ]
    for reason, found in (record.faults if record else {}).items():
        more = ", ..." if found.count > len(found.such_as) else ""
        told.append(f"{found.count} {reason} ({', '.join(found.such_as)}{more})")
    if told:
        return literal("; ".join(told))
    return "not known" if _not_asked(record.stages if record else {}) else "none known"


def _recorded(what: str, entries: Mapping[str, KnownBad] | Mapping[str, Accepted]) -> Iterator[str]:
    if entries:
        first = min(entry.expires for entry in entries.values())
        yield f"{len(entries)} {what} (the first expires {first})"
