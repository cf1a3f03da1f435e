"""Names of images: what Docker's short forms stand for, and where a site's mirror has the same image."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

HUB = "docker.io"
"""The registry of names without one."""

_MAX_LENGTH = 512
_REFERENCE = re.compile(
    r"(?:(?P<host>[A-Za-z0-9.-]+(?::\d+)?)/)?(?P<path>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """An image's full name."""

    host: str
    """``docker.io`` where the name has none."""
    path: str
    tag: str
    digest: str = ""
    """``sha256:...`` where the name is pinned; the tag beside it means nothing then."""

    def __str__(self) -> str:
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{self.tag}"

    @property
    def repository(self) -> str:
        """Host and path."""
        return f"{self.host}/{self.path}"


def parse_reference(name: str) -> Reference:
    """Return the full name of an image, by Docker's rules. Raises ValueError where ``name`` cannot be one."""
    match = _REFERENCE.fullmatch(name) if len(name) <= _MAX_LENGTH else None
    if match is None:
        raise ValueError(f"{name[:100]!r} is no image name")
    host, path = match["host"] or "", match["path"]
    if host and "." not in host and ":" not in host and host != "localhost":
        host, path = "", f"{host}/{path}"
    host = host if host not in ("", f"index.{HUB}") else HUB
    if path != path.lower():
        raise ValueError(f"{name!r} is no image name: upper case")
    if host == HUB and "/" not in path:
        path = f"library/{path}"
    return Reference(host, path, match["tag"] or "latest", match["digest"] or "")


@dataclass(frozen=True, slots=True)
class Mirrors:
    """Where a site has what other registries have: ``[mirrors]`` of the cluster profile."""

    prefixes: Mapping[str, str]
    """``HOST[/PATH]`` of names to what stands there instead."""

    def places(self, reference: Reference) -> tuple[Reference, ...]:
        """Return where to ask for an image: its mirror, if the site has one, and then its own registry.

        Of several prefixes that fit, the longest counts.
        """
        own = reference.repository
        fitting = [prefix for prefix in self.prefixes if f"{own}/".startswith(f"{prefix}/")]
        if not fitting:
            return (reference,)
        prefix = max(fitting, key=len)
        host, _, path = (self.prefixes[prefix] + own[len(prefix) :]).partition("/")
        return replace(reference, host=host, path=path), reference
