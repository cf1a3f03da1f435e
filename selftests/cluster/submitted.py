"""Runs given to a real Slurm, with a stub in place of the stages: what tests of them need."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from pytest_otval.ledger import read_ledger
from selftests.glue.conftest import STUB, TASK_TOML
from selftests.localslurm import LocalSlurm

REPOSITORY = Path(__file__).parents[2]
PYTEST = Path(sys.executable).with_name("pytest")
PROFILE = "localslurm"


@dataclass
class Ended:
    """How a command ended."""

    status: int
    output: str
    errors: str

    @property
    def lines(self) -> list[str]:
        return self.output.splitlines()


@dataclass
class Site:
    """A user's project and workspace on shared storage."""

    slurm: LocalSlurm
    root: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @classmethod
    def make(cls, slurm: LocalSlurm, name: str) -> Site:
        site = cls(slurm, slurm.shared / name)
        for folder in ("clusters", "plugins", "ws/runs", "ws/images", "ws/datasets"):
            (site.root / folder).mkdir(parents=True)
        for profile in ("local", PROFILE):
            shutil.copy(REPOSITORY / "clusters" / f"{profile}.toml", site.root / "clusters")
        shutil.copy(STUB, site.root / "plugins")
        return site

    @property
    def environment(self) -> dict[str, str]:
        return {
            "OT_WORKSPACE": str(self.root / "ws"),
            "OT_CLUSTER": PROFILE,
            "PYTHONPATH": str(self.root / "plugins"),
            "PY_COLORS": "0",
        }

    def own(self) -> None:
        """Let all of it belong to the user."""
        if os.getuid() == 0:
            subprocess.run(["chown", "-R", f"{self.slurm.user}:", self.root], check=True)

    def dataset(self, tasks: Mapping[str, Mapping[str, str]], name: str = "demo") -> None:
        """Make a dataset; each task maps stages to what the stub answers."""
        folder = self.root / "datasets" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "dataset.toml").write_text(f'[dataset]\nname = "org/{name}"\n')
        for task, wanted in tasks.items():
            (folder / "tasks" / task / "wanted").mkdir(parents=True)
            (folder / "tasks" / task / "task.toml").write_text(TASK_TOML)
            for stage, answer in wanted.items():
                (folder / "tasks" / task / "wanted" / stage).write_text(answer)
        self.own()

    def real_dataset(self, names: Sequence[str], images: Sequence[Path]) -> None:
        """Take tasks of the demo, and of images only those that theirs lie on."""
        for file in (self.root / "ws" / "images").glob("[0-9a-f]*.*"):
            file.unlink()
        folder = self.root / "datasets" / "demo"
        shutil.rmtree(folder, ignore_errors=True)
        for name in names:
            shutil.copytree(REPOSITORY / "datasets" / "demo" / "tasks" / name, folder / "tasks" / name)
        shutil.copy(REPOSITORY / "datasets" / "demo" / "dataset.toml", folder)
        for file in images:
            for one in (file, file.with_suffix(".json")):
                shutil.copy(one, self.root / "ws" / "images")
        self.own()

    def hold(self, name: str) -> str:
        """Return an answer of the stub that waits for ``let_go``."""
        return f"hold {self.root / name}"

    def began(self, name: str) -> list[str]:
        """Return a line with node and job for each time that what was held began."""
        file = self.root / f"{name}.began"
        return file.read_text().splitlines() if file.exists() else []

    def wait_until_running(self, name: str, times: int = 1) -> str:
        """Wait until what is held runs; return its node."""
        self.slurm.until(lambda: len(self.began(name)) >= times)
        return self.began(name)[-1].split()[0]

    def let_go(self, name: str) -> None:
        (self.root / f"{name}.go").touch()

    def start(self, *argv: str | Path) -> subprocess.Popen[str]:
        """Start a program as the user, in the project."""
        process = subprocess.Popen(
            self.slurm.command(*argv, **self.environment),
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def pytest(self, *words: str | Path, stub: bool = True) -> subprocess.Popen[str]:
        return self.start(PYTEST, *(("-p", "otval_stub") if stub else ()), "datasets/demo", *words)

    def submit(self, run: Path, *words: str | Path, stub: bool = True, profile: str = PROFILE) -> subprocess.Popen[str]:
        """Start the submission of a run."""
        return self.pytest(f"--otval-submit={profile}", "--otval-cpus=2", f"--otval-out={run}", *words, stub=stub)

    def profile(self, name: str, first: str = "", **changes: str) -> str:
        """Make a profile that is the usual one but for some words, and return its name."""
        text = first + (self.root / "clusters" / f"{PROFILE}.toml").read_text()
        for old, new in changes.items():
            text = re.sub(rf"(?m)^{old} = .*$", f"{old} = {new}", text)
        (self.root / "clusters" / f"{name}.toml").write_text(text)
        return name

    def command(self, *words: str | Path) -> Ended:
        return ended(self.start(sys.executable, "-P", "-m", "pytest_otval", *words))

    def attach(self, run: Path, *words: str | Path) -> subprocess.Popen[str]:
        return self.start(sys.executable, "-P", "-m", "pytest_otval", "attach", run, *words)

    def run(self, name: str) -> Path:
        """Return a new run folder's path."""
        return self.root / "ws" / "runs" / name

    def job(self, run: Path, array: int = 0) -> str:
        """Return Slurm's id of an array of a run, once it is known."""
        file = run / "arrays" / f"{array}.json"
        self.slurm.until(lambda: file.exists() and json.loads(file.read_text())["job"])
        return str(json.loads(file.read_text())["job"])


def inner(process: subprocess.Popen[str]) -> psutil.Process:
    """Return the Python behind runuser, which hands on no signals."""
    outer = psutil.Process(process.pid)
    for one in [outer, *outer.children(recursive=True)]:
        if one.name().startswith("python"):
            return one
    raise AssertionError("it has ended")


def ended(process: subprocess.Popen[str]) -> Ended:
    output, errors = process.communicate()
    return Ended(process.returncode, output, errors)


def results(run: Path) -> dict[str, list[dict]]:
    """Return all result lines of each item."""
    found: dict[str, list[dict]] = {}
    for line in read_ledger(run):
        if line["kind"] == "result":
            found.setdefault(line["id"], []).append(line)
    return found
