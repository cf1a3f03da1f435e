"""A dataset's name and settings, from its dataset.toml.

The file stays readable for Harbor 0.26, whose manifest has [dataset], [[tasks]], [[files]] and [metadata] and ignores
other tables; ours is [otval].
"""

from __future__ import annotations

import datetime
import difflib
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any, Literal

import tomli

from pytest_otval.core import LEVELS, NAME, Finding, Isolation, Severity, Verdict
from pytest_otval.task.allowed import Allowance, read_allowances
from pytest_otval.task.lines import KeyPath, Lines, dotted
from pytest_otval.task.reading import NotReadableError, read_regular
from pytest_otval.task.saved import EXAMPLE, TABLE, read_saved

DATASET_TOML = "dataset.toml"
MAX_TOML_BYTES = 16 * 1024 * 1024
"""[[tasks]] of a published dataset has one entry a task."""

ACCEPTED_KEYS = ("reason", "owner", "expires")
KNOWN_BAD_KEYS = (*ACCEPTED_KEYS, "stages")

OF_SOURCES = ("source", "adapter", "options", "images")
"""Keys of [otval] that say how the tasks are made; they change no verdict, and ``sources.origin`` reads them."""

DIGEST = re.compile(r"sha256:[a-f0-9]{64}")
PACKAGE_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]*/[a-zA-Z0-9][a-zA-Z0-9._-]*")


@dataclass(frozen=True, slots=True)
class KnownBad:
    """A task that is recorded as unsound: it is expected to fail at ``stages``, and not to pass them."""

    reason: str
    owner: str
    expires: datetime.date
    """The last day it applies."""
    stages: tuple[str, ...] = ("oracle",)
    """Stages that fail; with ``build`` among them, what that blocks is expected as well."""

    def __str__(self) -> str:
        return f"known bad until {self.expires} ({self.owner}): {self.reason}"

    def expects(self, stage: str, verdict: Verdict) -> bool:
        """Whether this answer of a stage is the expected one, as long as it is no pass."""
        return ("build" if verdict is Verdict.BLOCKED else stage) in self.stages


@dataclass(frozen=True, slots=True)
class Accepted:
    """An attack that is known to pay: it is recorded and fails nothing."""

    reason: str
    owner: str
    expires: datetime.date
    """The last day it applies."""

    def __str__(self) -> str:
        return f"accepted until {self.expires} ({self.owner}): {self.reason}"


@dataclass(frozen=True, slots=True)
class DatasetSettings:
    """The [otval] table."""

    oracle: Literal["required", "none"] = "required"
    """none: the dataset ships no reference solutions, so their absence is no finding."""
    reward_key: str | None = None
    """The key of reward.json that decides; None: ``reward``, else the only key."""
    oracle_min: float = 1.0
    """oracle passes at a score of at least this."""
    noop_max: float = 0.0
    """noop and attacks pass at a score of at most this."""
    reward_range: tuple[float, float] = (0.0, 1.0)
    """Lowest and highest valid score."""
    isolation: Isolation = "fresh"
    """Of shared verifiers, unless the task says otherwise."""
    levels: Mapping[str, Isolation] = field(default_factory=dict)
    """The same by task name, for tasks that need another."""
    known_bad: Mapping[str, KnownBad] = field(default_factory=dict)
    """By task name; expired entries are left out."""
    accepted: Mapping[str, Accepted] = field(default_factory=dict)
    """By the attack's id; expired entries are left out."""
    allow: tuple[Allowance, ...] = ()
    """Findings that are allowed in many tasks; expired entries are left out."""
    runtimes: Mapping[str, str] = field(default_factory=dict)
    """Checksums of the runtimes that tasks have, by id."""
    harbor_lint: Mapping[str, Any] = field(default_factory=dict)
    """``[metadata.harbor.lint]``, as it is: which rules `harbor lint` applies."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset folder, or the folder around a lone task."""

    path: Path
    name: str
    """What stands in node ids: the folder's name."""
    settings: DatasetSettings
    findings: tuple[Finding, ...]


def dataset_folder(task: Path) -> Path:
    """Return the folder of the dataset that a task folder belongs to: the one above it, skipping ``tasks``."""
    above = task.absolute().parent
    return above.parent if above.name == "tasks" else above


def load_dataset(folder: Path, today: datetime.date | None = None) -> Dataset:
    """Load the dataset in ``folder``; without a dataset.toml it has the default settings. Never raises.

    ``today`` decides which known_bad entries have expired; None is the present day in UTC.
    """
    folder = folder.absolute()
    reader = _Reader(today or datetime.datetime.now(datetime.UTC).date())
    settings = reader.read(folder / DATASET_TOML)
    if not NAME.fullmatch(folder.name):
        reader.say("ds-name", Severity.ERROR, (), f"the folder name {folder.name!r} cannot stand in a node id")
    return Dataset(folder, folder.name, settings, tuple(reader.findings))


def same_settings(first: Path, second: Path) -> bool:
    """Whether two dataset.toml say the same, but for runtimes, which runs add; a wrong one says what no other does."""
    try:
        return _without_runtimes(first) == _without_runtimes(second)
    except (OSError, NotReadableError, ValueError, RecursionError):
        return False


def _without_runtimes(path: Path) -> dict[str, Any]:
    data = tomli.loads(read_regular(path, MAX_TOML_BYTES).decode())
    ours = data.get("otval")
    if isinstance(ours, dict):
        ours.pop(TABLE, None)
    return data


def harbor_lint(metadata: Any) -> Mapping[str, Any]:
    """Return the table ``harbor.lint`` of a [metadata] table; empty where there is none."""
    for key in ("harbor", "lint"):
        metadata = metadata.get(key) if isinstance(metadata, dict) else None
    return metadata if isinstance(metadata, dict) else {}


class _Reader:
    """Reads one dataset.toml; a wrong value is a finding, and the default is used in its place."""

    def __init__(self, today: datetime.date) -> None:
        self.today = today
        self.findings: list[Finding] = []
        self.lines = Lines("")

    def say(self, check: str, severity: Severity, path: KeyPath, message: str, fix: str = "") -> None:
        message = f"{dotted(path)}: {message}" if path else message
        self.findings.append(Finding(check, severity, message, DATASET_TOML, self.lines.of(path), fix))

    def read(self, path: Path) -> DatasetSettings:
        try:
            source = read_regular(path, MAX_TOML_BYTES).decode()
            data = tomli.loads(source)
        except FileNotFoundError:
            return DatasetSettings()
        except NotReadableError as error:
            self.say("ds-unreadable", Severity.ERROR, (), f"dataset.toml {error}", "make it a regular file")
            return DatasetSettings()
        except (ValueError, RecursionError) as error:
            self.say("ds-parse", Severity.ERROR, (), f"dataset.toml is no TOML: {' '.join(str(error).split())}")
            return DatasetSettings()
        self.lines = Lines(source)
        self.check_manifest(data)
        table = data.get("otval", {})
        lint = harbor_lint(data.get("metadata"))
        if not isinstance(table, dict):
            self.say("ds-invalid", Severity.ERROR, ("otval",), "is no table", "write [otval]")
            return DatasetSettings(harbor_lint=lint)
        return replace(self.settings(table), harbor_lint=lint)

    def check_manifest(self, data: Mapping[str, Any]) -> None:
        """Say where Harbor could not read the file; our own commands do not need those tables."""
        info = data.get("dataset")
        if not isinstance(info, dict) or not _is_package(info.get("name")):
            self.say("ds-manifest", Severity.WARNING, ("dataset", "name"), "Harbor needs a name", 'write "org/name"')
        for index, task in _tables(data.get("tasks")):
            if not _is_package(task.get("name")) or not _is_digest(task.get("digest")):
                message = "Harbor needs `name` (org/name) and `digest` (sha256:...)"
                self.say("ds-manifest", Severity.WARNING, ("tasks", index), message)
        for index, file in _tables(data.get("files")):
            name = file.get("path")
            if not isinstance(name, str) or "/" in name or "\\" in name:
                self.say("ds-manifest", Severity.WARNING, ("files", index), "Harbor needs `path`, a plain file name")

    def settings(self, table: Mapping[str, Any]) -> DatasetSettings:
        good: dict[str, Any] = {}
        for key, value in table.items():
            if key == "known_bad":
                good[key] = dict(self.known_bad(value))
            elif key == "accepted":
                good[key] = dict(self.accepted(value))
            elif key == "allow":
                good[key] = tuple(self.allowances(value))
            elif key == TABLE:
                good[key] = dict(self.runtimes(value))
            elif key in OF_SOURCES:
                continue
            elif key in SETTINGS:
                wanted, convert = SETTINGS[key]
                try:
                    good[key] = convert(value)
                except (TypeError, ValueError):
                    self.say("ds-invalid", Severity.ERROR, ("otval", key), f"{short_repr(value)} is not {wanted}")
            else:
                self.unknown(("otval", key), [*SETTINGS, "known_bad", "accepted", "allow", TABLE, *OF_SOURCES])
        return DatasetSettings(**good)

    def unknown(self, path: KeyPath, known: list[str]) -> None:
        close = difflib.get_close_matches(str(path[-1]), known, n=1)
        fix = f"did you mean `{close[0]}`?" if close else f"known are {', '.join(known)}"
        self.say("ds-unknown-field", Severity.ERROR, path, "there is no such setting", fix)

    def allowances(self, value: Any) -> Iterator[Allowance]:
        for number, found in enumerate(read_allowances(value, ("otval", "allow"), self.today)):
            if isinstance(found, Allowance):
                yield replace(found, line=self.lines.of(("otval", "allow", number)))
            else:
                self.say(found.check, found.severity, found.path, found.message, found.fix)

    def runtimes(self, value: Any) -> Iterator[tuple[str, str]]:
        for name, checksum in read_saved(value):
            if checksum is not None:
                yield name, checksum
            else:
                path = ("otval", TABLE, name) if name else ("otval", TABLE)
                self.say("ds-invalid", Severity.ERROR, path, "names no runtime", f"write {EXAMPLE}")

    def known_bad(self, tasks: Any) -> Iterator[tuple[str, KnownBad]]:
        if not isinstance(tasks, dict):
            self.say("ds-invalid", Severity.ERROR, ("otval", "known_bad"), "is no table of tasks")
            return
        for name, entry in tasks.items():
            path = ("otval", "known_bad", name)
            if not self.is_owned(entry, path, KNOWN_BAD_KEYS):
                continue
            stages = entry.get("stages", ["oracle"])
            if not isinstance(stages, list) or not stages or not all(isinstance(stage, str) for stage in stages):
                message = f"{short_repr(stages)} is no list of stages"
                self.say("ds-invalid", Severity.ERROR, (*path, "stages"), message)
                continue
            known = KnownBad(entry["reason"], entry["owner"], entry["expires"], tuple(stages))
            if known.expires < self.today:
                message = f"expired on {known.expires} and no longer applies"
                fix = f"{known.owner}: repair the task, or set a new date"
                self.say("ds-known-bad-expired", Severity.WARNING, path, message, fix)
            else:
                yield name, known

    def accepted(self, attacks: Any) -> Iterator[tuple[str, Accepted]]:
        if not isinstance(attacks, dict):
            self.say("ds-invalid", Severity.ERROR, ("otval", "accepted"), "is no table of attacks")
            return
        for name, entry in attacks.items():
            path = ("otval", "accepted", name)
            if not self.is_owned(entry, path, ACCEPTED_KEYS):
                continue
            accepted = Accepted(entry["reason"], entry["owner"], entry["expires"])
            if accepted.expires < self.today:
                message = f"expired on {accepted.expires} and no longer applies"
                fix = f"{accepted.owner}: close the way it takes, or set a new date"
                self.say("ds-accepted-expired", Severity.WARNING, path, message, fix)
            else:
                yield name, accepted

    def is_owned(self, entry: Any, path: KeyPath, keys: tuple[str, ...]) -> bool:
        """Whether an entry says why, whose it is and until when; say so where it does not."""
        if not isinstance(entry, dict) or not _is_owned(entry):
            fix = 'write {reason = "...", owner = "...", expires = 2030-01-31}'
            self.say("ds-invalid", Severity.ERROR, path, "needs reason, owner and a date expires", fix)
            return False
        for key in entry.keys() - set(keys):
            self.unknown((*path, key), list(keys))
        return True


def _tables(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield index and table of each entry; what is no table, or no array, is as good as an empty one."""
    for index, entry in enumerate(value if isinstance(value, list) else [] if value is None else [value]):
        yield index, entry if isinstance(entry, dict) else {}


def _is_package(name: Any) -> bool:
    return isinstance(name, str) and PACKAGE_NAME.fullmatch(name) is not None and ".." not in name


def _is_digest(digest: Any) -> bool:
    return isinstance(digest, str) and DIGEST.fullmatch(digest) is not None


def _is_owned(entry: Mapping[str, Any]) -> bool:
    texts = all(isinstance(entry.get(key), str) and entry[key] for key in ("reason", "owner"))
    return texts and type(entry.get("expires")) is datetime.date


def _one_of(*allowed: str) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if value not in allowed:
            raise ValueError
        return str(value)

    return convert


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError
    return float(value)


def _range(value: Any) -> tuple[float, float]:
    if not isinstance(value, list):
        raise TypeError
    low, high = (_number(end) for end in value)
    if low >= high:
        raise ValueError
    return low, high


def _levels(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError
    convert = _one_of(*LEVELS)
    return {name: convert(level) for name, level in value.items()}


_LEVELS = " or ".join(f'"{level}"' for level in LEVELS)

SETTINGS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "oracle": ('"required" or "none"', _one_of("required", "none")),
    "reward_key": ("a key of reward.json", _text),
    "oracle_min": ("a finite number", _number),
    "noop_max": ("a finite number", _number),
    "reward_range": ("two finite numbers, [lowest, highest]", _range),
    "isolation": (_LEVELS, _one_of(*LEVELS)),
    "levels": (f"a table of tasks, each with {_LEVELS}", _levels),
}
"""Each key of [otval] but those that are tables: what it takes, in words, and the function that checks it."""
