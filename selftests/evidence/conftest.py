"""Folders to archive, and what a person does with an archive."""

import subprocess
from pathlib import Path

import pytest

from pytest_otval.evidence import Archive, shown

NAME = "demo/task/oracle"
LOGS = {"agent/oracle.txt": b"solved\n", "verifier/reward.txt": b"1", "verifier/empty": b"", "result.json": b"{}\n"}


def fill(path: Path, contents):
    """Write files by relative path; None makes a folder."""
    path.mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        target = path / name
        (target if data is None else target.parent).mkdir(parents=True, exist_ok=True)
        if data is not None:
            target.write_bytes(data)
    return path


def archive_of(run: Path, entries, writer="main"):
    """Write entries with one file each and return their places."""
    archive = Archive(run, writer)
    places = []
    for number, data in enumerate(entries):
        places.append(archive.add(fill(run / "work" / str(number), {"log": data}), f"demo/t{number}/noop"))
    archive.close()
    return places


@pytest.fixture
def add(tmp_path):
    """Archive a folder with these contents and return its place."""

    def make(contents=LOGS, writer="main"):
        archive = Archive(tmp_path, writer)
        place = archive.add(fill(tmp_path / "work", contents), NAME)
        archive.close()
        return place

    return make


def tool(command: str) -> str:
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def listing(run: Path, place: str) -> str:
    """Return the command that a person is shown, without writing to /tmp."""
    command = shown(run, place)
    assert command.endswith(" | tar xzvC /tmp")
    return command.replace("xzvC /tmp", "tz")
