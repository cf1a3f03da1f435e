"""The task of a repository with a bug: what is asked for is a patch, and a verifier with an image of its own judges it.

Agent's and verifier's image are made by the same instructions, so most of them is stored once. Nothing comes from one
to the other but the difference between the agent's work tree and the commit that it began with.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import tomlkit

from pytest_otval.sources.adapters.templates import fill, read_data
from pytest_otval.sources.files import File, Files, text, under

Network = Literal["no-network", "public"]

START = "otval-start"
"""The tag of the commit that the agent begins with."""

FORGET_HISTORY = (
    "git config --system --add safe.directory '*' \\\n"
    "    && git checkout -q --orphan main-without-history \\\n"
    "    && git add -A \\\n"
    "    && git -c user.name=start -c user.email=start@localhost commit -q --no-verify --allow-empty -m start \\\n"
    '    && git clone -q --bare --no-local --depth 1 "file://$PWD" /tmp/start.git \\\n'
    "    && rm -rf .git \\\n"
    "    && mv /tmp/start.git .git \\\n"
    "    && git config core.bare false \\\n"
    "    && git config --remove-section remote.origin \\\n"
    "    && git reset -q \\\n"
    f"    && git tag {START}"
)
"""Shell commands after which a repository has one commit, of the files as they are, and no object of any other."""

CONTROL_FILES = ("pytest.ini", ".pytest.ini", "pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml")
"""What pytest is configured by, at the top of a repository."""

_COLLECT = (
    "mkdir -p /logs/artifacts && cd {workdir} && git add -A "
    f"&& git diff --cached --binary --no-color --no-ext-diff --no-textconv {START} > /logs/artifacts/work.patch"
)
_GLOB = re.compile(r"([*?\[\]])")


@dataclass(frozen=True, slots=True)
class Tests:
    """What is run, and what decides."""

    runner: Literal["pytest", "unittest"]
    run: Sequence[str]
    """Files, tests or names that the runner is given."""
    fail_to_pass: Sequence[str] = ()
    pass_to_pass: Sequence[str] = ()
    selected: Sequence[str] = ()
    """What has to pass as a whole, where no ids are known."""
    patch: str = ""
    """Brings the tests, where the images do not have them."""
    own_paths: Sequence[str] = ()
    """Files that are never taken from the agent."""


@dataclass(frozen=True, slots=True)
class RepositoryTask:
    """All that a task is made from."""

    dockerfile: str
    """Makes both images; its workdir is the repository, with the commit START."""
    workdir: str
    instruction: str
    fix: str
    fixed_paths: Sequence[str]
    """Files that the reference patch changes: they are taken from the agent even if they configure tests."""
    tests: Tests
    metadata: Mapping[str, Any]
    network: Network
    agent_seconds: float
    verifier_seconds: float
    build_seconds: float
    python: str = ""
    """The Python that has the product's packages; empty for ``python3`` of the image."""
    build_files: Mapping[str, File] = field(default_factory=dict)
    """What the Dockerfile copies."""


def repository_files(task: RepositoryTask) -> Files:
    """Return the files of the task. Equal inputs give equal files."""
    words = {
        "WORKDIR": shlex.quote(task.workdir),
        "RULES": " ".join(shlex.quote(rule) for rule in _rules(task)),
        "TEST_PATCH": "git apply --whitespace=nowarn /tests/test.patch || exit 1\n" if task.tests.patch else "",
        "PYTHON": shlex.quote(task.python) if task.python else '"${OT_PYTHON:-python3}"',
    }
    ids = {key: list(getattr(task.tests, key)) for key in ("run", "fail_to_pass", "pass_to_pass", "selected")}
    files = {
        "task.toml": text(_task_toml(task)),
        "instruction.md": text(task.instruction),
        "environment/Dockerfile": text(task.dockerfile),
        **under("environment", task.build_files),
        "solution/solve.sh": text(fill(read_data("repository/solve.sh"), words), executable=True),
        "solution/fix.patch": text(task.fix),
        **under("tests", task.build_files),
        "tests/Dockerfile": text(f"{task.dockerfile}COPY . /tests/\n"),
        "tests/test.sh": text(fill(read_data("repository/test.sh"), words), executable=True),
        "tests/run_tests.py": text(read_data(f"repository/run_{task.tests.runner}.py")),
        "tests/grade.py": text(read_data("repository/grade.py")),
        "tests/ids.json": text(json.dumps(ids, indent=1, ensure_ascii=False) + "\n"),
    }
    if task.tests.patch:
        files["tests/test.patch"] = text(task.tests.patch)
    return files


def ending_in_newline(patch: str) -> str:
    """Return a patch as git takes it: some sources lost the end of its last line."""
    return patch if patch.endswith("\n") else f"{patch}\n"


def _rules(task: RepositoryTask) -> list[str]:
    """Return options of ``git apply``, of which the first that matches a path decides."""
    own = [f"--exclude={_pattern(path)}" for path in sorted(set(task.tests.own_paths))]
    asked = [f"--include={_pattern(path)}" for path in sorted(set(task.fixed_paths))]
    control = [f"--exclude={name}" for name in ("conftest.py", "*/conftest.py", *CONTROL_FILES)]
    return [*own, *asked, *control, "--include=*"]


def _pattern(path: str) -> str:
    return _GLOB.sub(r"[\1]", path)


def _task_toml(task: RepositoryTask) -> str:
    rest = _settings(task.agent_seconds, task.verifier_seconds, task.build_seconds, task.network, task.workdir)
    return f'schema_version = "1.4"\n\n{tomlkit.dumps({"metadata": dict(task.metadata)})}\n{rest}'


@lru_cache(maxsize=8)
def _settings(agent: float, verifier: float, build: float, network: Network, workdir: str) -> str:
    """Return the tables of task.toml that most tasks of a source have in common."""
    tables = {
        "agent": {"timeout_sec": agent},
        "verifier": {
            "environment_mode": "separate",
            "timeout_sec": verifier,
            "collect": [{"command": _COLLECT.format(workdir=shlex.quote(workdir))}],
        },
        "environment": {"build_timeout_sec": build, "network_mode": network},
    }
    return tomlkit.dumps(tables)
