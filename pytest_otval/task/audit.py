"""What Harbor reads other than it is written, without a word: one finding for each such place of task.toml.

ERROR where the task that runs is provably other than the one written, WARNING where something is lost that may not
matter, INFO for old spellings that still work.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from reprlib import repr as short_repr
from typing import Any

from pytest_otval.core import Finding, Severity
from pytest_otval.task import values
from pytest_otval.task.lines import KeyPath, Lines, dotted
from pytest_otval.task.model import EnvironmentConfig, NetworkTable, Sound, TaskConfig
from pytest_otval.task.overlaps import overlaps
from pytest_otval.task.tables import Place, fields, places

MAX_NOTES = 200
"""More findings about one file help nobody, and a hostile one could ask for millions."""

LIKELY_TYPO = 0.8
"""Similarity (ratio of difflib) from which an unknown key counts as a misspelt one."""

FALSE_TEXTS = ("false", "0", "no", "off", "f", "n")
"""What the schema reads as false."""

_SECRET = re.compile(r"(?:^|_)(?:API_?KEY|TOKEN|SECRET|PASSWORD)(?:_|$)", re.IGNORECASE)
"""Names of variables that cannot have a default."""

KNOWN_SCHEMAS = ("1.0", "1.1", "1.2", "1.3", "1.4")


@dataclass(frozen=True, slots=True)
class Note:
    """A finding whose line is not looked up yet."""

    check: str
    severity: Severity
    path: KeyPath
    message: str
    fix: str = ""

    def finding(self, lines: Lines) -> Finding:
        """Return the finding, which says where."""
        message = f"{dotted(self.path)}: {self.message}"
        return Finding(self.check, self.severity, message, "task.toml", lines.of(self.path), self.fix)


def audit(data: Mapping[str, Any], lines: Lines) -> list[Finding]:
    """Return the findings about the parsed data of a task.toml, which may be invalid."""
    notes = (note for place in places(TaskConfig, data) for rule in RULES for note in rule(place))
    return [note.finding(lines) for note in itertools.islice(notes, MAX_NOTES)]


def _unknown_keys(place: Place) -> Iterator[Note]:
    known = [*fields(place.model), *place.model.old_keys]
    for key in place.table:
        path = (*place.path, key)
        if key == "artifacts" and key not in known:
            fix = "write it before the first [table], or in its [[steps]]"
            yield Note("toml-misplaced-artifacts", Severity.ERROR, path, "no artifact is carried over", fix)
        elif key not in known:
            close = difflib.get_close_matches(
                key[:64], [name for name in known if name not in place.table], 1, LIKELY_TYPO
            )
            severity = Severity.ERROR if close else Severity.WARNING
            fix = f"did you mean `{close[0]}`?" if close else _home_of(key)
            yield Note("toml-unknown-field", severity, path, "Harbor ignores this key", fix)


def _home_of(key: str) -> str:
    """Say where a key belongs that stands in the wrong table; notes of authors belong in [metadata]."""
    homes = [table or "the top of the file" for table, model in HOMES.items() if key in fields(model)]
    return f"it belongs to {' or '.join(homes)}" if homes else "drop it, or move it to [metadata]"


HOMES = {
    "[environment]": EnvironmentConfig,
    **{
        f"[{name}]": facts.tables[0]
        for name, facts in fields(TaskConfig).items()
        if facts.tables and name not in ("environment", "steps", "artifacts")
    },
    "": TaskConfig,
}


def _old_keys(place: Place) -> Iterator[Note]:
    for old, new in place.model.old_keys.items():
        if old not in place.table:
            continue
        path, value = (*place.path, old), place.table[old]
        if old == "version" and place.table.get(new, value) == value:
            yield Note("toml-deprecated", Severity.INFO, path, f"`{old}` is old", f"write `{new}`")
        elif old == "version":
            yield Note("toml-lost-value", Severity.WARNING, path, f"`{new}` wins over it", f"drop `{old}`")
        elif old == "multi_step_reward_mode":
            harmless = value == "mean" or place.table.get(new) == value
            severity = Severity.INFO if harmless else Severity.ERROR
            yield Note("toml-lost-value", severity, path, "Harbor ignores this key since schema 1.3", f"write `{new}`")
        elif isinstance(value, str):
            yield Note("toml-deprecated", Severity.INFO, path, f"`{old}` is old", f"write `{new}`, in MB")
        else:
            severity = Severity.WARNING if new in place.table else Severity.ERROR
            message = f"{short_repr(value)} is no text such as '4G' and lost"
            yield Note("toml-lost-value", severity, path, message, f"write `{new}`, in MB")


def _allow_internet(place: Place) -> Iterator[Note]:
    allowed = place.table.get("allow_internet")
    if place.model is not EnvironmentConfig or allowed is None:
        return
    path = (*place.path, "allow_internet")
    mode = place.table.get("network_mode", "public")
    newer = {"network_mode", "allowed_hosts"} & place.table.keys()
    is_false = str(allowed).lower() in FALSE_TEXTS
    if newer and is_false != (mode == "no-network"):
        message = f"the value is lost: `{min(newer, key=len)}` wins and the network is {short_repr(mode)}"
        yield Note("toml-lost-value", Severity.ERROR, path, message, "drop `allow_internet`")
    else:
        yield Note("toml-deprecated", Severity.INFO, path, "`allow_internet` is old", "write `network_mode`")


def _coerced(place: Place) -> Iterator[Note]:
    for key, facts in fields(place.model).items():
        value = place.table.get(key)
        path = (*place.path, key)
        numeric = facts.scalars & {int, float}
        if isinstance(value, bool) and numeric and bool not in facts.scalars:
            yield Note(
                "toml-coerced", Severity.ERROR, path, f"{str(value).lower()} is read as {int(value)}", "write a number"
            )
        elif isinstance(value, str) and str not in facts.scalars and numeric and _number(value) is not None:
            yield Note(
                "toml-coerced",
                Severity.WARNING,
                path,
                f"{short_repr(value)} is a text read as a number",
                "drop the quotes",
            )
        elif isinstance(value, str | int | float) and not isinstance(value, bool) and facts.scalars == {bool}:
            yield Note(
                "toml-coerced",
                Severity.WARNING,
                path,
                f"{short_repr(value)} is read as true or false",
                "write true or false",
            )


def _out_of_range(place: Place) -> Iterator[Note]:
    for key, facts in fields(place.model).items():
        value = place.table.get(key)
        if facts.sound is None or value is None:
            continue
        named = value.items() if isinstance(value, dict) else [(None, value)]
        for name, number in named:
            path = (*place.path, key) if name is None else (*place.path, key, name)
            yield from _range_note(path, number, facts.sound)
    for old, new in place.model.old_keys.items():
        size = place.table.get(old)
        facts = fields(place.model)[new]
        if isinstance(size, str) and facts.sound is not None:
            yield from _range_note((*place.path, old), _size(size), facts.sound)


def _range_note(path: KeyPath, value: Any, sound: Sound) -> Iterator[Note]:
    number = _number(value)
    if number is not None and not sound.holds(number):
        yield Note(
            "toml-out-of-range", Severity.ERROR, path, f"{short_repr(value)} is not {sound}", "write a number in range"
        )


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _size(text: str) -> int | None:
    try:
        return values.size_in_mib(text)
    except ValueError:
        return None


def _env_templates(place: Place) -> Iterator[Note]:
    env = place.table.get("env")
    if "env" not in fields(place.model) or not isinstance(env, dict):
        return
    for name, value in env.items():
        if not isinstance(value, str) or "${" not in value:
            continue
        path = (*place.path, "env", name)
        match = values.TEMPLATE.fullmatch(value)
        if match is None:
            message = "a ${VAR} inside a text is not replaced: the text stays as written"
            yield Note("toml-env-literal", Severity.WARNING, path, message, "only a whole value is a template")
        elif match[2] is None:
            message = f"no trial on a host without {short_repr(match[1])}"
            secret = _SECRET.search(match[1]) is not None
            severity = Severity.INFO if secret else Severity.WARNING
            yield Note("toml-env-no-default", severity, path, message, "give it a default, or say it in README.md")


def _empty_allowlist(place: Place) -> Iterator[Note]:
    if not issubclass(place.model, NetworkTable) or place.table.get("allowed_hosts"):
        return
    if place.table.get("network_mode") == "allowlist":
        message = "no host is allowed, so there is no network"
        fix = "fill `allowed_hosts`, or write 'no-network'"
        yield Note("toml-allowlist-empty", Severity.WARNING, (*place.path, "network_mode"), message, fix)


def _relative_workdir(place: Place) -> Iterator[Note]:
    workdir = place.table.get("workdir")
    if (
        not isinstance(workdir, str)
        or place.model is not EnvironmentConfig
        or place.table.get("os", "linux") != "linux"
    ):
        return
    if workdir and not workdir.startswith("/"):
        yield Note(
            "toml-relative-path",
            Severity.ERROR,
            (*place.path, "workdir"),
            f"{short_repr(workdir)} is relative",
            "write it from /",
        )


def _whole(place: Place) -> Iterator[Note]:
    """What only the whole file tells."""
    if place.path:
        return
    data = place.table
    version = data.get("schema_version", data.get("version", "1.4"))
    if isinstance(version, str) and version not in KNOWN_SCHEMAS:
        key = "schema_version" if "schema_version" in data else "version"
        message = f"{short_repr(version)} is no schema of Harbor, which never compares it"
        yield Note("toml-schema-version", Severity.WARNING, (key,), message, 'write "1.4"')
    yield from _agent_limit(data)
    for path, winner in overlaps(data):
        message = f"skipped: its place overlaps that of the earlier {short_repr(str(winner.source))}"
        yield Note("toml-artifact-overlap", Severity.WARNING, path, message, "give it another `destination`")
    steps = data.get("steps")
    if not isinstance(steps, list) or not steps:
        if "multi_step_reward_strategy" in data:
            message = "ignored: the task has no [[steps]]"
            yield Note("toml-lost-value", Severity.WARNING, ("multi_step_reward_strategy",), message, "drop it")
        return
    yield from _step_timeouts(data, steps)


def _agent_limit(data: Mapping[str, Any]) -> Iterator[Note]:
    steps = data.get("steps")
    tables = [data, *(step for step in steps if isinstance(step, dict))] if isinstance(steps, list) else [data]
    limited = ["timeout_sec" in _inner(table, "agent") for table in tables]
    if not limited[0] and not (limited[1:] and all(limited[1:])):
        fix = "write [agent] timeout_sec"
        yield Note("toml-timeouts-present", Severity.WARNING, ("agent",), "the agent may run for ever", fix)


def _step_timeouts(data: Mapping[str, Any], steps: list[Any]) -> Iterator[Note]:
    limit = _number(_inner(data, "verifier").get("timeout_sec"))
    if limit is None or limit == 600:
        return
    for index, step in enumerate(steps):
        if isinstance(step, dict) and "timeout_sec" not in _inner(step, "verifier"):
            message = f"its verifier gets 600 seconds: [verifier].timeout_sec = {limit:g} is not inherited"
            fix = f"write [steps.verifier] timeout_sec = {limit:g}"
            yield Note("toml-step-timeout", Severity.ERROR, ("steps", index), message, fix)


def _inner(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = data.get(key)
    return inner if isinstance(inner, dict) else {}


RULES: tuple[Callable[[Place], Iterator[Note]], ...] = (
    _unknown_keys,
    _old_keys,
    _allow_internet,
    _coerced,
    _out_of_range,
    _env_templates,
    _empty_allowlist,
    _relative_workdir,
    _whole,
)
