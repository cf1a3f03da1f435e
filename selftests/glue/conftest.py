"""A folder with datasets, and pytest runs over it with a stub in place of the stages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import pytest

from pytest_otval.ledger import read_ledger

# Pytester forgets the modules that a run in this process imported, and these cannot be loaded a second time.
for _library in ("numpy", "scipy.special", "scipy.stats"):
    import_module(_library)

TASK_TOML = "[agent]\ntimeout_sec = 30.0\n[verifier]\ntimeout_sec = 30.0\n"
STUB = Path(__file__).with_name("otval_stub.py")


@dataclass
class Outcome:
    """How a pytest run ended."""

    status: int
    lines: list[str]
    errors: list[str]
    """Lines of standard error."""

    @property
    def ids(self) -> list[str]:
        """The node ids that ``--co -q`` lists."""
        return [line for line in self.lines if "::" in line]

    @property
    def counts(self) -> dict[str, int]:
        """The numbers in the last line, by what they count."""
        numbers = self.lines[-1].strip("= ").rpartition(" in ")[0].split(", ")
        return {what.removesuffix("s"): int(number) for number, _, what in (entry.partition(" ") for entry in numbers)}

    @property
    def refusal(self) -> str:
        """The one line of a usage error."""
        assert self.status == 4, self.lines + self.errors
        (line,) = [line for line in self.errors if line.startswith("ERROR: ")]
        return line.removeprefix("ERROR: ")


@dataclass
class Project:
    """``datasets/`` below ``root``, and a workspace elsewhere."""

    pytester: pytest.Pytester
    workspace: Path
    runs: list[Path] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.pytester.path

    def dataset(
        self,
        name: str = "demo",
        tasks: Mapping[str, Mapping[str, str]] | None = None,
        otval: str = "",
        at: Path | None = None,
    ) -> Path:
        """Make a dataset with these tasks; each maps stages to what the stub answers."""
        folder = (at or self.root / "datasets") / name
        folder.mkdir(parents=True)
        (folder / "dataset.toml").write_text(f'[dataset]\nname = "org/{name}"\n[otval]\n{otval}\n')
        for task, wanted in ({"a": {}, "b": {}} if tasks is None else tasks).items():
            self.task(folder / "tasks" / task, **wanted)
        return folder

    def task(self, folder: Path, **wanted: str) -> Path:
        (folder / "wanted").mkdir(parents=True)
        (folder / "task.toml").write_text(TASK_TOML)
        for stage, answer in wanted.items():
            (folder / "wanted" / stage).write_text(answer)
        return folder

    def run(self, *args: str | Path) -> Outcome:
        """Run pytest in this process."""
        result = self.pytester.runpytest_inprocess("-p", "otval_stub", *self._out(), *args)
        return Outcome(int(result.ret), result.outlines, result.errlines)

    def collect(self, *args: str | Path) -> list[str]:
        """Return the node ids that a run would have."""
        outcome = self.run("--co", "-q", *args)
        assert outcome.status in (0, 5), outcome.lines + outcome.errors
        return outcome.ids

    def start(
        self, *args: str | Path, command: tuple[str, ...] = (sys.executable, "-P", "-m", "pytest"), **environment: str
    ) -> subprocess.Popen[str]:
        """Start pytest as a process of its own, with the stub."""
        words = [*command, "-p", "otval_stub", *self._out(), *map(str, args)]
        variables = {**os.environ, "PYTHONPATH": str(STUB.parent), "PY_COLORS": "0", **environment}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        return subprocess.Popen(
            words,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def process(self, *args: str | Path, **kwargs) -> Outcome:
        """Run pytest as a process of its own."""
        return finish(self.start(*args, **kwargs))

    def _out(self) -> list[str]:
        self.runs.append(self.workspace / "runs" / str(len(self.runs)))
        return [f"--otval-out={self.runs[-1]}"]

    def ledger(self) -> dict[str, dict]:
        """Return the result lines of the last run by node id."""
        return {line["id"]: line for line in read_ledger(self.runs[-1]) if line["kind"] == "result"}


def finish(process: subprocess.Popen[str]) -> Outcome:
    output, errors = process.communicate()
    return Outcome(process.returncode, output.splitlines(), errors.splitlines())


@pytest.fixture
def project(pytester, tmp_path, monkeypatch) -> Project:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    monkeypatch.setenv("OT_WORKSPACE", str(workspace))
    monkeypatch.setenv("OT_SCRATCH", str(tmp_path / "scratch"))
    for name in ("OT_CLUSTER", "PYTHONSAFEPATH", "PYTEST_XDIST_WORKER", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        # Set first, so that a change by the run within this process is undone.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.syspath_prepend(str(STUB.parent))
    return Project(pytester, workspace)


def ids(
    *tasks: str, dataset: str = "demo", stages: tuple[str, ...] = ("static", "build", "oracle", "noop")
) -> list[str]:
    """Return the node ids of stages of tasks."""
    return [f"datasets/{dataset}/tasks/{task}/task.toml::{stage}" for task in tasks for stage in stages]
