"""Bugs of BugsInPy: a project's commit with a bug, the patch of the one that fixed it, and the commands that tell.

Each bug is a folder ``projects/PROJECT/bugs/NUMBER`` with bug.info, run_test.sh, bug_patch.txt, mostly requirements.txt
and setup.sh; ``projects/PROJECT/project.info`` says where the project's repository is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from pytest_otval.sources.adapters.base import Outcome, Record, RefusalError, convert_all
from pytest_otval.sources.adapters.bugsinpy_tests import read_tests
from pytest_otval.sources.adapters.diffs import paths_of, read_patch
from pytest_otval.sources.adapters.fields import check_text, match_of
from pytest_otval.sources.adapters.folders import read_text
from pytest_otval.sources.adapters.repository_task import (
    START,
    Network,
    RepositoryTask,
    Tests,
    ending_in_newline,
    repository_files,
)
from pytest_otval.sources.adapters.templates import fill, read_data
from pytest_otval.sources.files import Files, SourceError, text

WORKDIR = "/testbed"

_COMMIT = re.compile(r"[0-9a-f]{7,40}")
"""Some are abbreviated, so they cannot be fetched by themselves."""
_VERSION = re.compile(r"3\.\d{1,2}\.\d{1,2}")
_URL = re.compile(r"https://github\.com/[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+/?")
_PATH = re.compile(r"(?!\.\.?(/|$))[A-Za-z0-9._-]+(/(?!\.\.?(/|$))[A-Za-z0-9._-]+)*")
_FOLDER = re.compile(r"[A-Za-z0-9._/-]*")
_ENTRY = re.compile(r"\s*(\w+)\s*=\s*\"([^\"]*)\"\s*")


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class BugsInPy:
    """The adapter ``bugsinpy``; its source is the repository's work tree."""

    name: ClassVar[str] = "bugsinpy"

    network: Network = "no-network"
    """Of agents: with a network they can look the fix up."""
    agent_seconds: Annotated[float, Field(gt=0)] = 3600.0
    verifier_seconds: Annotated[float, Field(gt=0)] = 1800.0
    build_seconds: Annotated[float, Field(gt=0)] = 3600.0

    def convert(self, source: Path) -> Iterator[Outcome]:
        """See ``Adapter``."""
        return convert_all(self._records(source / "projects"))

    def _records(self, projects: Path) -> Iterator[Record]:
        if not projects.is_dir():
            raise SourceError(f"{projects}: is no folder: run `python -m pytest_otval upstream setup bugsinpy`")
        for project in sorted(path for path in projects.iterdir() if path.is_dir()):
            bugs = [path for path in project.glob("bugs/*") if path.is_dir()]
            for bug in sorted(bugs, key=_number):
                yield Record(f"{project.name}-{bug.name}", partial(self._files, project, bug))

    def _files(self, project: Path, bug: Path, _: str) -> Files:
        info = read_info(bug / "bug.info", "bug.info")
        url = match_of(read_info(project / "project.info", "project.info"), "github_url", _URL, "address at GitHub")
        commits = {key: match_of(info, f"{key}_commit_id", _COMMIT, "commit") for key in ("buggy", "fixed")}
        test_files = _test_files(info)
        fix = read_text(bug / "bug_patch.txt", "bug_patch.txt", keep_ends=True)
        fixed_paths = paths_of(read_patch(fix, "bug_patch.txt"))
        if there := set(fixed_paths) & set(test_files):
            raise RefusalError(
                "wrong-patch", f"bug_patch.txt changes the test file {min(there)}, which is fixed already"
            )
        runner, selected = read_tests(read_text(bug / "run_test.sh", "run_test.sh"))
        words = {
            "VERSION": match_of(info, "python_version", _VERSION, "version of Python"),
            "WORKDIR": WORKDIR,
            "PYTHONPATH": _python_path(info),
            "URL": url.rstrip("/"),
            "BUGGY": commits["buggy"],
            "FIXED": commits["fixed"],
            "TESTS": " ".join(map(shlex.quote, test_files)),
            "START": START,
        }
        return repository_files(
            RepositoryTask(
                dockerfile=fill(read_data("bugsinpy/Dockerfile"), words),
                workdir=WORKDIR,
                instruction=_instruction(project.name, test_files, selected),
                fix=ending_in_newline(fix),
                fixed_paths=fixed_paths,
                tests=Tests(runner=runner, run=selected, selected=selected, own_paths=test_files),
                metadata={"adapter": self.name, "project": project.name, "bug": bug.name, "url": url, **commits},
                network=self.network,
                agent_seconds=self.agent_seconds,
                verifier_seconds=self.verifier_seconds,
                build_seconds=self.build_seconds,
                build_files=_build_files(bug),
            )
        )


def read_info(path: Path, what: str) -> Mapping[str, str]:
    """Return the entries ``key="value"`` of a file, by key in small letters. Raises RefusalError."""
    found = map(_ENTRY.fullmatch, read_text(path, what).splitlines())
    return {entry[1].lower(): entry[2].strip() for entry in found if entry}


def _number(bug: Path) -> tuple[int, str]:
    return (int(bug.name) if bug.name.isdecimal() and len(bug.name) < 10 else 0, bug.name)


def _test_files(info: Mapping[str, str]) -> list[str]:
    files = [re.sub("//+", "/", one.strip()) for one in info.get("test_file", "").split(";") if one.strip()]
    if not files:
        raise RefusalError("no-tests", "bug.info has no test_file")
    for one in files:
        if not _PATH.fullmatch(one):
            raise RefusalError("unsafe-path", f"bug.info has the test_file {one[:80]!r}, which is no plain path")
    return files


def _python_path(info: Mapping[str, str]) -> str:
    """Return an ENV instruction for the folders of ``pythonpath``, of which the first part is the project's folder."""
    folders = [one.strip() for one in info.get("pythonpath", "").split(";") if one.strip()]
    for one in folders:
        if not _FOLDER.fullmatch(one) or ".." in one:
            raise RefusalError("unsafe-path", f"bug.info has the pythonpath {one[:80]!r}, which is no plain path")
    inside = [f"{WORKDIR}/{one.strip('/').partition('/')[2]}".rstrip("/") for one in folders]
    return f"ENV PYTHONPATH={':'.join(inside)}\n" if inside else ""


def _build_files(bug: Path) -> Files:
    """Return what the image is made with. Raises RefusalError."""
    files = {"install.sh": text(read_data("bugsinpy/install.sh"), executable=True)}
    for name, place in _OPTIONAL.items():
        content = read_text(bug / name, name) if (bug / name).exists() else ""
        check_text(content, name)
        files[place] = text(f"{content.rstrip()}\n")
    return files


_OPTIONAL = {"requirements.txt": "requirements.txt", "setup.sh": "project-setup.txt"}
"""Where files of a bug lie in the build context. A setup.sh in tests/ would be run by itself before the tests."""


def _instruction(project: str, test_files: list[str], selected: list[str]) -> str:
    return (
        f"# Fix a bug in {project}\n\n"
        f"The repository in `{WORKDIR}` has a bug, which these tests show:\n\n"
        + "".join(f"- `{one}`\n" for one in selected)
        + f"\nThey are in {', '.join(f'`{WORKDIR}/{one}`' for one in test_files)}. Change the code so that they pass "
        "and everything that works today goes on working. What you change in these files, and in what configures the "
        "tests, is put back before the tests run.\n"
    )
