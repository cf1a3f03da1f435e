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
from pytest_otval.images.model import ImageRequest
from pytest_otval.images.store import Images
from pytest_otval.profile import ImageNames, Profile, Recipe
from pytest_otval.sandbox.base import CommandResult
from pytest_otval.sandbox.leftovers import OwnScratch
from pytest_otval.sandbox.probe import apptainer_maker, choose_flavour
from pytest_otval.sandbox.toolbox import ensure_toolbox
from selftests.images.tiny import SilentRegistry, tiny_base, tiny_profile


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


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """Sandbox, toolbox and scratch."""
    folder = tmp_path_factory.mktemp("machine")
    toolbox = ensure_toolbox(folder)
    scratch = OwnScratch(folder)
    make = apptainer_maker(toolbox, scratch, "none")
    flavour = choose_flavour(Profile(name="x").sandbox.flavours, make, toolbox, scratch)
    if flavour.name == "fakeroot-preload":
        pytest.skip("the fakeroot program needs a C library in the image, which the toolbox has not")
    yield make(flavour), toolbox, scratch
    scratch.close()


@pytest.fixture
def tiny(machine, tmp_path, silent_registry, monkeypatch):
    """Make an Images over ``FROM tiny``: ``tiny(store_name)``, with real containers."""
    sandbox, _, scratch = machine
    profile = tiny_profile()
    monkeypatch.setattr("pytest_otval.images.making.bootstrap", lambda _, target, all_root: tiny_base(target, all_root))

    def make(store="store"):
        path = tmp_path / store
        sources = own_sources(path, profile, registry=silent_registry)
        options = {"sources": sources, "offline": False}
        base = Images(path, sandbox, profile, scratch.folder, tmp_path / "run" / store, **options)
        base.ensure_recipe("tiny")
        # From here on there is no network, and none is needed.
        return Images(path, sandbox, profile, scratch.folder, tmp_path / "run" / store, **{**options, "offline": True})

    return make


@pytest.fixture
def request_of():
    def make(folder, seconds=120.0):
        return ImageRequest(folder, None, seconds)

    return make
