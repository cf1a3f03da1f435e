"""Log-ins at registries: from the environment, or from Apptainer's own store. Nothing else is looked at.

A task may name any registry. So what the environment holds goes only to the hosts that the cluster profile names,
although Apptainer itself would send it to each; the store has log-ins by host.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_otval.images.reference import HUB, Reference

_PREFIXES = ("APPTAINER_DOCKER_", "DOCKER_")
"""Of USERNAME and PASSWORD in the environment, as Apptainer reads them."""

_HUB_HOSTS = {HUB, f"index.{HUB}", f"registry-1.{HUB}"}


@dataclass(frozen=True, slots=True)
class Login:
    """A user and a password; neither is ever shown."""

    user: str = field(repr=False)
    password: str = field(repr=False)

    @property
    def header(self) -> str:
        """The value of ``Authorization`` by the scheme Basic."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


class Credentials:
    """What this user may show to registries."""

    def __init__(self, environment_for: Collection[str] = (HUB,)) -> None:
        """``environment_for`` are the hosts that may have what the environment holds."""
        self._hosts = {_host(name) for name in environment_for}

    def login(self, reference: Reference) -> Login | None:
        """Return the log-in for an image's registry; like Apptainer's, the environment's wins."""
        given = _from_environment() if _host(reference.host) in self._hosts else None
        return given or _from_store(reference)


def _from_environment() -> Login | None:
    for prefix in _PREFIXES:
        user, password = (os.environ.get(prefix + name, "") for name in ("USERNAME", "PASSWORD"))
        if user and password:
            return Login(user, password)
    return None


def _from_store(reference: Reference) -> Login | None:
    """Log-ins may be kept for one repository or for a host, which ``docker login`` writes as an address."""
    try:
        values = json.loads(_store().read_text(encoding="utf-8"))
        logins: Mapping[str, Any] = values["auths"]
        by_place = {_place(name): entry for name, entry in logins.items()}
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    entry = by_place.get(f"{_host(reference.host)}/{reference.path}") or by_place.get(_host(reference.host))
    return _login(entry) if isinstance(entry, dict) else None


def _store() -> Path:
    """Return Apptainer's ``docker-config.json``; where there is none, Apptainer reads Docker's own."""
    folder = os.environ.get("APPTAINER_CONFIGDIR", "")
    own = Path(folder or Path.home() / ".apptainer") / "docker-config.json"
    return own if own.exists() else Path(folder or Path.home() / ".docker") / "config.json"


def _login(entry: Mapping[str, Any]) -> Login | None:
    try:
        user, _, password = base64.b64decode(entry.get("auth") or "").decode().partition(":")
    except (binascii.Error, ValueError, TypeError):
        return None
    user, password = entry.get("username") or user, entry.get("password") or password.rstrip("\0")
    return Login(str(user), str(password)) if user and password else None


def _place(name: str) -> str:
    """Return ``https://index.docker.io/v1/`` and the like as ``docker.io``; a repository stays one."""
    host, slash, path = name.removeprefix("https://").removeprefix("http://").partition("/")
    path = path.strip("/")
    return _host(host) + (f"/{path}" if slash and path not in ("", "v1", "v2") else "")


def _host(name: str) -> str:
    return HUB if name in _HUB_HOSTS else name
