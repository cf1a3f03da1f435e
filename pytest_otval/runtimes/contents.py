"""What is in a packed runtime: the checksum of each file, and the packages with versions and licences.

Read from its files; nothing of it is run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

from pytest_otval.images.lower import Lower, Node
from pytest_otval.images.packages import installed_by_dpkg
from pytest_otval.runtimes.record import Package
from pytest_otval.task.packed.unpack import Kind

_MAX_TEXT_BYTES = 32 << 20
_LICENCE_SIGNS = 120
_STATUS = "var/lib/dpkg/status"
_COPYRIGHT = re.compile(r"(?:usr/)?share/doc/[^/]+/copyright")
_METADATA = re.compile(r"(?:.*/)?[^/]+\.(?:dist|egg)-info/(?:METADATA|PKG-INFO)")
_MANIFEST = re.compile(r"(?:.*/)?node_modules/(?:@[^/]+/)?[^/]+/package\.json")
_DEP5_LICENCE = re.compile(r"^License:[ \t]*(\S.*)$", re.MULTILINE)
_CLASSIFIER = "License :: "


class Contents:
    """What lies below a folder of a squashfs. LookupError: there is none; OSError; DamagedError."""

    def __init__(self, squashfs: Path, path: str) -> None:
        self.files: dict[str, str] = {}
        """sha256 of each regular file, by its path below the folder."""
        self.links: set[str] = set()
        """Paths of symbolic links."""
        self.alone = True
        """Whether nothing stands beside the folder and those above it."""
        self._texts: dict[str, bytes] = {}
        with Lower([squashfs]) as lower:
            node = lower.root()
            for part in path.strip("/").split("/"):
                names = lower.names(node) if node.inode.kind is Kind.FOLDER else []
                self.alone = self.alone and names == [part]
                child = lower.child(node, part) if part in names else None
                if child is None:
                    raise LookupError(path)
                node = child
            if node.inode.kind is not Kind.FOLDER:
                raise LookupError(path)
            for name, found in _below(lower, node):
                if found.inode.kind is Kind.LINK:
                    self.links.add(name)
                elif found.inode.kind is Kind.FILE:
                    self.files[name] = self._read(lower, name, found)

    def _read(self, lower: Lower, name: str, node: Node) -> str:
        digest, keep = hashlib.sha256(), _tells_packages(name) and node.inode.size <= _MAX_TEXT_BYTES
        kept = bytearray()
        for block in lower.content(node):
            digest.update(block)
            if keep:
                kept += block
        if keep:
            self._texts[name] = bytes(kept)
        return digest.hexdigest()

    def packages(self) -> dict[str, dict[str, Package]]:
        """Return what is installed, by way of installing and name."""
        found = {"dpkg": dict(self._dpkg()), "pip": dict(self._pip()), "npm": dict(self._npm())}
        return {kind: dict(sorted(packages.items())) for kind, packages in found.items() if packages}

    def _dpkg(self) -> Iterator[tuple[str, Package]]:
        for name, version in installed_by_dpkg(self._text(_STATUS)):
            text = self._text(f"share/doc/{name}/copyright") or self._text(f"usr/share/doc/{name}/copyright")
            words = _DEP5_LICENCE.findall(text)
            yield name, Package(version, _licence(", ".join(dict.fromkeys(words))))

    def _pip(self) -> Iterator[tuple[str, Package]]:
        for path in filter(_METADATA.fullmatch, self._texts):
            fields = HeaderParser().parsestr(self._text(path))
            name = fields.get("Name")
            if name:
                yield name.replace("_", "-").lower(), Package(fields.get("Version", ""), _licence(_pip_licence(fields)))

    def _npm(self) -> Iterator[tuple[str, Package]]:
        for path in filter(_MANIFEST.fullmatch, self._texts):
            try:
                values = json.loads(self._text(path))
                yield str(values["name"]), Package(str(values["version"]), _licence(str(values.get("license", ""))))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue

    def _text(self, path: str) -> str:
        return self._texts.get(path, b"").decode(errors="replace")


def _below(lower: Lower, folder: Node, above: str = "") -> Iterator[tuple[str, Node]]:
    for name in lower.names(folder):
        node = lower.child(folder, name)
        if node is None:
            continue
        yield above + name, node
        if node.inode.kind is Kind.FOLDER:
            yield from _below(lower, node, f"{above}{name}/")


def _tells_packages(path: str) -> bool:
    patterns = (_COPYRIGHT, _METADATA, _MANIFEST)
    return path == _STATUS or any(pattern.fullmatch(path) for pattern in patterns)


def _pip_licence(fields: Message) -> str:
    classifiers = [one for one in fields.get_all("Classifier", []) if one.startswith(_CLASSIFIER)]
    short = fields.get("License", "")
    return (
        fields.get("License-Expression")
        or (short if "\n" not in short else "")
        or ", ".join(one.rpartition(" :: ")[2] for one in classifiers)
    )


def _licence(text: str) -> str:
    return " ".join(text.split())[:_LICENCE_SIGNS]
