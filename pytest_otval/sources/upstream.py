"""Repositories of others that adapters need, at pinned commits, in ``$OT_WORKSPACE/upstream``.

git checks every object that it fetches against its name, and the commit's name covers all of its files; so a clone at
the pinned commit, with the pinned tree, whose files are as they were checked out, is what was pinned.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tomli
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_otval.core import OtvalUsageError, printable
from pytest_otval.sources.files import SourceError

FOLDER = "upstream"
"""Of the workspace."""


class Pin(BaseModel):
    """One repository and the commit of it that is used."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = Field(pattern=r"^(https|http|file)://")
    commit: str = Field(pattern=r"^[0-9a-f]{40}$")
    tree: str = Field(pattern=r"^[0-9a-f]{40}$")
    licence: str


def load_pins(path: Path) -> Mapping[str, Pin]:
    """Load the pins of a file, by name. Raises OtvalUsageError with the place of the first fault."""
    try:
        tables = tomli.loads(path.read_text(encoding="utf-8"))
        return {name: Pin.model_validate(table) for name, table in tables.items()}
    except ValidationError as error:
        first = error.errors()[0]
        raise OtvalUsageError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (OSError, ValueError) as error:
        raise OtvalUsageError(f"{path}: {error}") from None


@dataclass(frozen=True, slots=True)
class Clone:
    """The clone of a pinned repository, there or not."""

    name: str
    pin: Pin
    path: Path

    def problem(self) -> str:
        """Tell why the clone is not what is pinned, or "". Asks no network."""
        if not (self.path / ".git").is_dir():
            return "is not there"
        try:
            commit, tree = _git(self.path, "rev-parse", "HEAD", "HEAD^{tree}").split()
            changed = _git(self.path, "status", "--porcelain", "--ignored", "--untracked-files=all")
        except SourceError as error:
            return f"cannot be read ({error})"
        if commit != self.pin.commit:
            return f"is at {commit[:12]}, pinned is {self.pin.commit[:12]}"
        if tree != self.pin.tree:
            return f"has the tree {tree[:12]}, pinned is {self.pin.tree[:12]}"
        return f"has changed files, as {printable(changed.splitlines()[0][3:])}" if changed else ""

    def make(self) -> None:
        """Clone the pinned commit, in place of what is there. It appears whole and verified, or not at all.

        Raises SourceError where the commit cannot be had, or has another tree than the pinned one.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=self.path.parent, prefix=".making-", ignore_cleanup_errors=True
        ) as scratch:
            made = Path(scratch) / "made"
            made.mkdir()
            fetch_commit(made, self.pin.url, self.pin.commit, links=False)
            tree = _git(made, "rev-parse", f"{self.pin.commit}^{{tree}}").strip()
            if tree != self.pin.tree:
                raise SourceError(
                    f"{self.pin.url}: tree {tree[:12]} of the commit is not the pinned {self.pin.tree[:12]}"
                )
            check_out(made, self.pin.commit)
            if self.path.exists():
                self.path.rename(Path(scratch) / "replaced")
            made.rename(self.path)

    def head(self) -> str:
        """Ask the repository for the commit that it has by now. Raises SourceError where it does not answer."""
        answer = _git(self.path.parent, "ls-remote", self.pin.url, "HEAD").split()
        if not answer:
            raise SourceError(f"{self.pin.url} has no HEAD")
        return answer[0]


def clones(pins: Mapping[str, Pin], workspace: Path, names: Sequence[str] = ()) -> list[Clone]:
    """Return the clones of the named pins, or of all. Raises OtvalUsageError for a name that is not pinned."""
    if unknown := sorted(set(names) - set(pins)):
        raise OtvalUsageError(f"no upstream is called {unknown[0]!r}: there are {', '.join(pins)}")
    return [Clone(name, pin, workspace / FOLDER / name) for name, pin in pins.items() if not names or name in names]


def fetch_commit(folder: Path, url: str, commit: str, links: bool) -> None:
    """Make an empty folder a repository that has one commit without its history, not yet checked out.

    ``links``: links of the commit become links, else files that hold their goals. Raises SourceError.
    """
    _git(folder, "init", "-q", "--template=")
    _git(folder, "config", "core.autocrlf", "false")
    _git(folder, "config", "core.symlinks", "true" if links else "false")
    _git(folder, "fetch", "-q", "--depth", "1", "--no-tags", url, commit)


def check_out(folder: Path, commit: str) -> None:
    """Write the files of a commit that was fetched. Raises SourceError."""
    _git(folder, "checkout", "-q", "--detach", commit)


def _git(folder: Path, *arguments: str) -> str:
    """Run git without asking anybody anything. Raises SourceError."""
    # Nothing of a surrounding repository, and no program that a clone or its hooks name.
    foreign = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
    env = {key: value for key, value in os.environ.items() if key not in foreign}
    env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    try:
        run = subprocess.run(command, capture_output=True, env=env, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise SourceError("git is not installed") from None
    if run.returncode != 0:
        said = run.stderr.decode("utf-8", "replace").strip().splitlines() or [f"status {run.returncode}"]
        raise SourceError(f"git {arguments[0]}: {printable(said[-1])[:200]}")
    return run.stdout.decode("utf-8", "surrogateescape")
