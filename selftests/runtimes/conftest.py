"""Runtimes for tests: one that a few lines of shell make, and the recipe for verifiers, made once a workspace."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from pytest_otval.runtimes.recipe import find_recipe
from pytest_otval.runtimes.record import Reference, write_reference
from pytest_otval.stages.saving import by_recipe
from selftests.conftest import REPOSITORY


@pytest.fixture(scope="session")
def verifier_runtime(real):
    """The runtime of the recipe python-verifier."""
    return real.installer.ensure(by_recipe(real, find_recipe("python-verifier", REPOSITORY)))


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A cache of this test alone."""
    monkeypatch.setenv("OT_RUNTIME_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def name_runtime(file: Path, runtime) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_reference(file, Reference.of(runtime))


def write_wheel(folder: Path) -> Path:
    """Write a wheel with a module ``mine``, which a test can install without a network."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / "mine-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("mine.py", "ANSWER = 42\n")
        archive.writestr("mine-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
        archive.writestr("mine-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("mine-1.dist-info/RECORD", "")
    return wheel
