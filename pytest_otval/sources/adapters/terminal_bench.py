"""Tasks in Terminal-Bench's old format: task.yaml, run-tests.sh, solution.sh or solution.yaml, tests/, a Dockerfile and
docker-compose.yaml.

The published test script runs as it is, in /tests as in its own harness. What decides stands in the output that its
parser reads; test.sh reads the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import tomlkit
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from pytest_otval.sources.adapters.base import Outcome, Record, RefusalError, convert_all
from pytest_otval.sources.adapters.compose import FILE, Service, read_service
from pytest_otval.sources.adapters.fields import text_of
from pytest_otval.sources.adapters.folders import read_folder
from pytest_otval.sources.adapters.templates import fill, read_data
from pytest_otval.sources.adapters.terminal_bench_files import TASK_YAML, image_files, solution, test_files, text_file
from pytest_otval.sources.adapters.yamls import load_yaml
from pytest_otval.sources.files import Files, SourceError, text, under

_PARSERS = {
    "pytest": ("*==*'short test summary info'*==*) inside=yes ;;",),
    "swebench": ("'SWEBench results starts here') inside=yes ;;", "'SWEBench results ends here') inside=no ;;"),
}
"""Lines of the script that find where results begin and end; pytest's go on to the end of the output."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class TerminalBench:
    """The adapter ``terminal-bench``; its source is a folder with tasks at any depth."""

    name: ClassVar[str] = "terminal-bench"

    build_seconds: Annotated[float, Field(gt=0)] = 1800.0
    """The old format has no limit for builds."""

    def convert(self, source: Path) -> Iterator[Outcome]:
        """See ``Adapter``. Folders between the source and a task become a part of its name, with ``__`` behind."""
        return convert_all(self._records(source))

    def _records(self, source: Path) -> Iterator[Record]:
        if not source.is_dir():
            raise SourceError(f"{source}: is no folder: fetch it, or run `python -m pytest_otval upstream setup`")
        for folder, folders, files in os.walk(source):
            folders.sort()
            if TASK_YAML in files:
                folders.clear()
                task = Path(folder)
                parts = task.relative_to(source).parts or (source.resolve().name,)
                yield Record("__".join(parts), partial(self._files, task, "/".join(parts)))

    def _files(self, folder: Path, path: str, _: str) -> Files:
        files = read_folder(folder)
        settings = _settings(files)
        service = read_service(text_file(files, FILE))
        marks = "\n        ".join(_parser(settings))
        return {
            "task.toml": text(tomlkit.dumps(self._task_toml(path, settings, service))),
            "instruction.md": text(f"{text_of(settings, 'instruction').rstrip()}\n"),
            **under("environment", image_files(files)),
            "solution/solve.sh": text(solution(files), executable=True),
            **under("tests", test_files(files)),
            "tests/test.sh": text(fill(read_data("terminal-bench/test.sh"), {"MARKS": marks}), executable=True),
        }

    def _task_toml(self, path: str, settings: Mapping[str, Any], service: Service) -> dict[str, Any]:
        limits = {"cpus": service.cpus, "memory_mb": service.memory_mb, "workdir": service.workdir}
        environment = {key: value for key, value in limits.items() if value is not None}
        return {
            "schema_version": "1.4",
            "metadata": {"adapter": self.name, "path": path, **_metadata(settings)},
            "agent": {"timeout_sec": _seconds(settings, "max_agent_timeout_sec")},
            "verifier": {"timeout_sec": _seconds(settings, "max_test_timeout_sec")},
            "environment": {
                "build_timeout_sec": self.build_seconds,
                "network_mode": "public",
                **environment,
                **({"env": dict(service.env)} if service.env else {}),
            },
        }


def _settings(files: Files) -> Mapping[str, Any]:
    settings = load_yaml(text_file(files, TASK_YAML), TASK_YAML)
    if not isinstance(settings, dict):
        raise RefusalError("unreadable", f"{TASK_YAML} holds no fields")
    return settings


def _parser(settings: Mapping[str, Any]) -> tuple[str, ...]:
    name = settings.get("parser_name", "pytest")
    if not isinstance(name, str) or name not in _PARSERS:
        raise RefusalError("unsupported-tests", f"{TASK_YAML} has the parser_name {str(name)[:80]!r}")
    return _PARSERS[name]


def _seconds(settings: Mapping[str, Any], key: str) -> float:
    value = settings.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        raise RefusalError("wrong-field", f"{key} is {str(value)[:80]!r} and no number of seconds")
    return float(value)


def _metadata(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what says something about the task, as far as it is of the kind that it should be."""
    facts: dict[str, Any] = {}
    for key in ("author_name", "author_email", "difficulty", "category", "parser_name"):
        value = settings.get(key)
        if isinstance(value, str) and value.isprintable() and len(value) <= 200:
            facts[key] = value
    if settings.get("run_tests_in_same_shell") is True:
        facts["run_tests_in_same_shell"] = True
    tags = settings.get("tags")
    if isinstance(tags, list) and all(isinstance(tag, str) and tag.isprintable() for tag in tags):
        facts["tags"] = tags
    return facts
