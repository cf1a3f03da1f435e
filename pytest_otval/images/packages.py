"""What an image has installed, read from its files: nothing of it is run, so nothing of it can lie about more."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_otval.images.lower import Lower, Node
from pytest_otval.task.packed.unpack import DamagedError, Kind

_MAX_STATUS_BYTES = 32 << 20
_MAX_MANIFEST_BYTES = 1 << 20
_DISTRIBUTION = re.compile(r"(.+?)-([^-]+)\.(?:dist-info|egg-info)")
_PYTHON = re.compile(r"python3(?:\.\d+)?")
_SITES = ("/usr/lib", "/usr/local/lib", "/opt/conda/lib", "/opt/venv/lib", "/venv/lib", "/app/.venv/lib")
"""Where folders ``pythonX.Y`` lie."""
_NODES = ("/usr/lib/node_modules", "/usr/local/lib/node_modules")


Packages = Mapping[str, Mapping[str, str]]
"""Versions by name, for each way to install."""


def installed(files: Sequence[Path]) -> Packages:
    """Return what dpkg, pip and npm installed in an image, as far as it lies in the usual places."""
    found = {}
    try:
        with Lower(files) as lower:
            for kind, look in _LOOKS.items():
                packages = dict(sorted(look(lower)))
                if packages:
                    found[kind] = packages
    except (DamagedError, OSError):
        return {}
    return found


def _dpkg(lower: Lower) -> Iterator[tuple[str, str]]:
    return installed_by_dpkg(_text(lower, "/var/lib/dpkg/status", _MAX_STATUS_BYTES))


def installed_by_dpkg(status: str) -> Iterator[tuple[str, str]]:
    """Yield name and version of each package that dpkg's status file says is installed."""
    for block in status.split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in block.splitlines() if line[:1].strip())
        if fields.get("Status", "").endswith(" installed") and "Package" in fields:
            yield fields["Package"], fields.get("Version", "")


def _pip(lower: Lower) -> Iterator[tuple[str, str]]:
    for site in _SITES:
        folder = _found(lower, site)
        for name in lower.names(folder) if folder is not None and folder.inode.kind is Kind.FOLDER else ():
            for packages in ("dist-packages", "site-packages") if _PYTHON.fullmatch(name) else ():
                inside = _found(lower, f"{site}/{name}/{packages}")
                if inside is None or inside.inode.kind is not Kind.FOLDER:
                    continue
                for entry in lower.names(inside):
                    match = _DISTRIBUTION.fullmatch(entry)
                    if match:
                        yield match[1].replace("_", "-").lower(), match[2]


def _npm(lower: Lower) -> Iterator[tuple[str, str]]:
    for place in _NODES:
        folder = _found(lower, place)
        for name in lower.names(folder) if folder is not None and folder.inode.kind is Kind.FOLDER else ():
            try:
                manifest = json.loads(_text(lower, f"{place}/{name}/package.json", _MAX_MANIFEST_BYTES))
                yield str(manifest["name"]), str(manifest["version"])
            except (ValueError, KeyError, TypeError, RecursionError):
                continue


_LOOKS: Mapping[str, Callable[[Lower], Iterator[tuple[str, str]]]] = {"dpkg": _dpkg, "pip": _pip, "npm": _npm}


def _text(lower: Lower, path: str, most: int) -> str:
    node = _found(lower, path)
    if node is None or node.inode.kind is not Kind.FILE:
        return ""
    return lower.read(node, most).decode(errors="replace")


def _found(lower: Lower, path: str) -> Node | None:
    """Return what stands at a path whose folders are no links."""
    node: Node | None = lower.root()
    for part in path.strip("/").split("/"):
        if node is None or node.inode.kind is not Kind.FOLDER:
            return None
        node = lower.child(node, part)
    return node
