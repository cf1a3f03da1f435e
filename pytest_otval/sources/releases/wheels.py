"""Wheels that satisfy requirements in a task's image. pip resolves them; nothing of a package is run for it."""

from __future__ import annotations

import importlib.util
import io
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from pydantic import ValidationError

from pytest_otval.core import OtvalUsageError, printable
from pytest_otval.sources.fetch import Archive
from pytest_otval.sources.files import SourceError
from pytest_otval.sources.releases.needs import PYTHON

_PLATFORMS = ("manylinux_2_36_x86_64", "manylinux_2_28_x86_64", "manylinux2014_x86_64", "any")
"""Of Debian bookworm."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that was resolved."""

    pin: str
    """``PROJECT==VERSION``."""
    archive: Archive


def resolve(requirements: Sequence[Requirement], known: Collection[str]) -> list[Wheel]:
    """Return wheels for all requirements and what these need, sorted, of the ``known`` pins where these do.

    Raises SourceError where there are no such wheels, with pip's own words; OtvalUsageError where there is no pip.
    """
    if importlib.util.find_spec("pip") is None:
        raise OtvalUsageError(f"{sys.executable} has no pip: {sys.executable} -m ensurepip, or uv pip install pip")
    try:
        return _resolve(requirements, known)
    except SourceError:
        return _resolve(requirements, ())


def _resolve(requirements: Sequence[Requirement], constraints: Collection[str]) -> list[Wheel]:
    with tempfile.TemporaryDirectory(prefix="otval-wheels-") as scratch:
        report, limits = Path(scratch) / "report.json", Path(scratch) / "constraints.txt"
        limits.write_text("".join(f"{pin}\n" for pin in sorted(constraints)))
        # Without --only-binary pip would run builds of source archives.
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"]
        command += ["--dry-run", "--ignore-installed", "--only-binary=:all:", "--implementation=cp"]
        command += [f"--python-version={PYTHON}", *(f"--platform={one}" for one in _PLATFORMS)]
        command += [f"--target={scratch}/none", f"--report={report}", f"--constraint={limits}"]
        command += [_plain(one) for one in requirements]
        run = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if run.returncode != 0:
            raise SourceError(f"no wheels for what it needs: {_last_error(run.stderr)}")
        return _read(report.read_bytes())


def _plain(requirement: Requirement) -> str:
    """Return a requirement without its marker, which pip would ask of this Python."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}{requirement.specifier}"


def _last_error(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith("WARNING")]
    return printable(" ".join(lines[-1].split()))[:200] if lines else "pip failed"


def _read(report: bytes) -> list[Wheel]:
    wheels = []
    for entry in json.loads(report)["install"]:
        name, version = entry["metadata"]["name"], entry["metadata"]["version"]
        file = PurePosixPath(entry["download_info"]["url"].partition("#")[0]).name
        checksum = entry["download_info"]["archive_info"]["hashes"].get("sha256", "")
        try:
            wheels.append(Wheel(f"{name}=={version}", Archive(project=name, file=file, sha256=checksum)))
        except ValidationError:
            raise SourceError(f"the wheel of {printable(name)} has no plain name or no sha256") from None
    return sorted(wheels, key=lambda wheel: wheel.pin.lower())


def modules_of(wheel: str, content: bytes) -> frozenset[str]:
    """Return the modules at the top of a wheel. Raises SourceError where unpacking it does not install it."""
    try:
        names = zipfile.ZipFile(io.BytesIO(content)).namelist()
    except (zipfile.BadZipFile, ValueError) as error:
        raise SourceError(f"{wheel} cannot be read: {error}") from None
    tops = [name.partition("/") for name in names]
    if odd := next((top for top, _, _ in tops if top.endswith(".data")), None):
        raise SourceError(f"{wheel} has {printable(odd)}: unpacking it does not install it")
    return frozenset(top.partition(".")[0] for top, slash, _ in tops if slash or top.endswith((".py", ".so")))
