import io
import json
import subprocess
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from pytest_otval.core import OtvalUsageError
from pytest_otval.sources.files import SourceError
from pytest_otval.sources.releases import wheels
from pytest_otval.sources.releases.wheels import modules_of, resolve

SHA = "0" * 64


def archive(*names):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name in names:
            file.writestr(name, "")
    return buffer.getvalue()


def entry(name, version, url, **hashes):
    return {
        "metadata": {"name": name, "version": version},
        "download_info": {"url": url, "archive_info": {"hashes": hashes}},
    }


@pytest.fixture
def pip(monkeypatch):
    """Stand in for pip: what it was asked, and what it answers."""

    class Pip:
        def __init__(self):
            self.asked, self.errors, self.report = [], [], {"install": []}

        def run(self, command, **options):
            limits = next(one.partition("=")[2] for one in command if one.startswith("--constraint="))
            report = next(one.partition("=")[2] for one in command if one.startswith("--report="))
            self.asked.append((command, Path(limits).read_text()))
            error = self.errors.pop() if self.errors else ""
            Path(report).write_text(json.dumps(self.report))
            return subprocess.CompletedProcess(command, 1 if error else 0, "", error)

    pip = Pip()
    monkeypatch.setattr(subprocess, "run", pip.run)
    return pip


def test_wheels_are_pinned_with_their_checksums(pip):
    pip.report = {
        "install": [
            entry("Zed", "2", "https://host/a/zed-2-py3-none-any.whl#sha256=x", sha256=SHA),
            entry("a", "1", "file:///x/a-1-py3-none-any.whl", sha256=SHA),
        ]
    }
    found = resolve([Requirement("a>=1; extra == 'test'"), Requirement("zed[x]")], ["pytest==8.4.2"])
    assert [(one.pin, one.archive.file) for one in found] == [
        ("a==1", "a-1-py3-none-any.whl"),
        ("Zed==2", "zed-2-py3-none-any.whl"),
    ]
    ((command, limits),) = pip.asked
    assert {"--only-binary=:all:", "--dry-run", "--python-version=3.11"} < set(command)
    assert command[-2:] == ["a>=1", "zed[x]"] and limits == "pytest==8.4.2\n"


def test_known_pins_that_do_not_fit_are_let_go(pip):
    pip.errors = ["ERROR: conflict"]
    assert resolve([Requirement("a")], ["b==1"]) == []
    assert [limits for _, limits in pip.asked] == ["b==1\n", ""]


def test_without_wheels_pips_own_words_are_told(pip):
    pip.errors = ["ERROR: No matching distribution found for \x1ba\nWARNING: newer pip\n"] * 2
    with pytest.raises(SourceError, match=r"no wheels for what it needs: ERROR: No matching .* for \\x1ba$"):
        resolve([Requirement("a")], ["b==1"])


@pytest.mark.parametrize(
    "odd", [entry("a", "1", "https://host/a-1.whl"), entry("a", "1", "https://host/..", sha256=SHA)]
)
def test_what_has_no_checksum_or_name_is_refused(pip, odd):
    pip.report = {"install": [odd]}
    with pytest.raises(SourceError, match="has no plain name or no sha256"):
        resolve([Requirement("a")], [])


def test_without_pip_it_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setattr(wheels.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(OtvalUsageError, match="has no pip: "):
        resolve([Requirement("a")], [])


def test_the_modules_of_a_wheel():
    content = archive("a/__init__.py", "b.py", "_c.cpython-311-x86_64-linux-gnu.so", "a-1.dist-info/RECORD", "d/e/f.py")
    assert modules_of("w", content) >= {"a", "b", "_c", "d"}


def test_a_wheel_that_unpacking_does_not_install_is_refused():
    with pytest.raises(SourceError, match=r"w has a-1\.data: unpacking it does not install it"):
        modules_of("w", archive("a/__init__.py", "a-1.data/scripts/x"))
    with pytest.raises(SourceError, match="w cannot be read"):
        modules_of("w", b"no zip")
