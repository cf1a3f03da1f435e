"""A sandbox that runs nothing, and a profile with one recipe."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from pytest_otval.images.bases import Bases, own_sources
from pytest_otval.images.registry import NoAnswerError
from pytest_otval.profile import ImageNames, Profile, Recipe
from pytest_otval.sandbox.base import CommandResult


@dataclass
class FakeSandbox:
    """Answers each command as ``answer(argv)`` says: None for success, else (ended, status, output)."""

    maps_uids: bool = True
    flavour: str = "fake"
    answer: object = lambda argv: None
    specs: list = field(default_factory=list)
    commands: list = field(default_factory=list)

    @contextmanager
    def open(self, spec):
        self.specs.append(spec)
        yield SimpleNamespace(run=self.run, start_seconds=0.0)

    def run(self, command):
        self.commands.append(command)
        ended, status, output = self.answer(list(command.argv)) or ("exit", 0, "")
        command.log.write_text(output)
        if command.stdout is not None:
            os.write(command.stdout, tar_bytes())
        return CommandResult(ended, status, 0.0, command.log)

    def remove(self, folder):
        shutil.rmtree(folder)

    def argvs(self):
        return [list(command.argv) for command in self.commands]


def tar_bytes() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        header = tarfile.TarInfo("file")
        header.size = 2
        tar.addfile(header, io.BytesIO(b"x\n"))
    return out.getvalue()


class SilentRegistry:
    """As on a machine without a network."""

    def resolve(self, reference):
        raise NoAnswerError(f"{reference.host}: no route")


@pytest.fixture
def profile():
    return Profile(
        name="test",
        images=(ImageNames(names=("debian:12", "debian:bookworm"), recipe="bookworm"),),
        recipes={"bookworm": Recipe(suite="bookworm", packages=("ca-certificates",))},
    )


@pytest.fixture
def bases(tmp_path, profile):
    return Bases(profile, own_sources(tmp_path / "store", profile, registry=SilentRegistry()))


@pytest.fixture
def silent_registry():
    return SilentRegistry()


@pytest.fixture
def fake_sandbox():
    return FakeSandbox()


@pytest.fixture
def environment(tmp_path):
    """Write a context: ``environment(dockerfile, {name: content})``."""

    def write(dockerfile, files=None):
        folder = tmp_path / "task" / "environment"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "Dockerfile").write_text(dockerfile)
        for name, content in (files or {}).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
        return folder

    return write
