"""Runtimes for tests: those of our recipes, made once a workspace, and a wheel that a test can install."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from pytest_otval.runtimes.recipe import find_recipe
from pytest_otval.runtimes.record import Reference, write_reference
from pytest_otval.sandbox.base import TOOLBOX, Bind, Command, ContainerSpec
from pytest_otval.stages.saving import by_recipe
from selftests.conftest import REPOSITORY

LIBRARY = "/usr/lib/x86_64-linux-gnu"
POISON = f"""
cp {LIBRARY}/libz.so.1 {LIBRARY}/libnss_evil.so.2 && cp {LIBRARY}/libz.so.1 /evil.so
echo /evil.so > /etc/ld.so.preload
printf 'passwd: evil files\\nhosts: evil files\\n' > /etc/nsswitch.conf
mkdir -p /etc/ssl
cat > /etc/ssl/openssl.cnf <<TEXT
nodejs_conf = o
openssl_conf = o
[o]
providers = p
[p]
evil = e
[e]
module = /evil.so
activate = 1
TEXT
"""
"""Each of these files makes an ordinary program load a library of the agent's choice."""
POISONED = "/usr/bin/grep -q /evil.so /proc/self/maps"
"""Succeeds in a container where ``POISON`` works on ordinary programs."""


@pytest.fixture(scope="session")
def verifier_runtime(real):
    """The runtime of the recipe python-verifier."""
    return real.installer.ensure(by_recipe(real, find_recipe("python-verifier", REPOSITORY)))


@pytest.fixture(scope="session")
def node_runtime(real):
    """The runtime of the recipe node-verifier."""
    return real.installer.ensure(by_recipe(real, find_recipe("node-verifier", REPOSITORY)))


@pytest.fixture
def mounted(real, image, tmp_path):
    """Run shell in a container with a verifier's runtime: ``mounted(RUNTIME, SCRIPT, env=...)`` returns what it said.

    Several scripts run one after the other in one container; ``files`` is the image.
    """

    def run(runtime, *scripts, env=None, files=image.files):
        bind = Bind(real.runtimes.file(runtime), runtime.path, "squashfs", inside=runtime.path, own_layer=True)
        said = []
        with real.sandbox.open(ContainerSpec(files, binds=[bind])) as container:
            for script in scripts:
                argv = [f"{TOOLBOX}/busybox", "sh", "-c", script]
                result = container.run(Command(argv, tmp_path / "said", env or {}, seconds=60))
                said.append((result.status, (tmp_path / "said").read_text()))
        return said[-1]

    return run


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
