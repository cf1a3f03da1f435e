"""Compose files: what reaches out of the container, or needs rights that a sandbox does not give."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.registry import Place, check
from pytest_otval.core import Severity

_FILE = "environment/docker-compose.yaml"
"""Others of the kind are files that the task is about."""
_MAX_BYTES = 256 * 1024
_MAX_DEPTH = 40
_HOST_MODES = {"network_mode": "network", "pid": "processes", "ipc": "shared memory", "userns_mode": "users"}
_STRONG = frozenset(("ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE", "SYS_RAWIO", "DAC_READ_SEARCH", "BPF"))
_SOCKET = re.compile(r"(?:^|/)(?:docker|containerd|podman)\.sock(?:$|:)")


@dataclass(frozen=True, slots=True)
class Scalar:
    """One scalar of a YAML file."""

    path: tuple[str, ...]
    """Keys that lead to it; an element of a list has the key ``[]``."""
    value: str
    line: int


def scalars(text: str) -> Iterator[Scalar]:
    """Yield the scalars of a YAML text with their keys; stops at what is no YAML. Aliases are not followed."""
    # Events, not nodes: nothing here recurses, whatever the text nests or refers to.
    keys: list[str] = []
    in_mapping: list[bool] = []
    pending: list[str | None] = []
    try:
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                if len(keys) >= _MAX_DEPTH:
                    return
                keys.append(_take(in_mapping, pending))
                in_mapping.append(isinstance(event, yaml.MappingStartEvent))
                pending.append(None)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                keys.pop()
                in_mapping.pop()
                pending.pop()
            elif isinstance(event, yaml.ScalarEvent | yaml.AliasEvent):
                value = event.value if isinstance(event, yaml.ScalarEvent) else ""
                if in_mapping and in_mapping[-1] and pending[-1] is None:
                    pending[-1] = value
                else:
                    key = _take(in_mapping, pending)
                    yield Scalar((*keys[1:], key), value, _line(event))
    except (yaml.YAMLError, ValueError):
        return


def _take(in_mapping: list[bool], pending: list[str | None]) -> str:
    """Return the key of the value that comes now."""
    if not in_mapping or not in_mapping[-1]:
        return "[]"
    key, pending[-1] = pending[-1], None
    return "" if key is None else key


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 1


_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _composed(context: CheckContext) -> Iterator[tuple[str, tuple[str, ...], Scalar]]:
    """Yield each setting of a service in the compose file that Harbor takes: file, keys below the service, scalar."""
    source = context.source(_FILE)
    if source is None or len(source.raw) > _MAX_BYTES:
        return
    for scalar in scalars(source.text):
        if scalar.path[:1] == ("services",) and len(scalar.path) > 2:
            yield _FILE, scalar.path[2:], scalar


@check(
    "compose-privileged",
    severity=Severity.WARNING,
    family="compose",
    explains="With these rights, or with the host's namespaces, what runs in the container reaches the machine.",
    fix="drop it; name the one capability that the task needs",
)
def privileged(context: CheckContext) -> Iterator[Place]:
    """Look for privileged services, strong capabilities and namespaces of the host."""
    for path, keys, scalar in _composed(context):
        value = scalar.value
        if keys == ("privileged",) and value.lower() in ("true", "yes", "on"):
            yield Place(path, "a privileged service", scalar.line)
        elif keys == ("cap_add", "[]") and value.upper().removeprefix("CAP_") in _STRONG:
            yield Place(path, f"the capability {value}", scalar.line)
        elif len(keys) == 1 and keys[0] in _HOST_MODES and value == "host":
            yield Place(path, f"the host's {_HOST_MODES[keys[0]]}", scalar.line)


@check(
    "compose-docker-socket",
    severity=Severity.WARNING,
    family="compose",
    explains="Who can write to the socket of the container engine is root on the machine.",
    fix="run the engine inside the service, or do without",
)
def docker_socket(context: CheckContext) -> Iterator[Place]:
    """Look for services that get the socket of the container engine."""
    for path, keys, scalar in _composed(context):
        if keys[:1] == ("volumes",) and _SOCKET.search(scalar.value) and keys[-1] != "target":
            yield Place(path, f"a service gets {scalar.value.split(':')[0]}", scalar.line)


@check(
    "compose-host-folder",
    severity=Severity.WARNING,
    family="compose",
    explains="A folder of the host is another one on the next machine, and what the agent writes there stays.",
    fix="COPY the files in the Dockerfile, or use a named volume",
)
def host_folder(context: CheckContext) -> Iterator[Place]:
    """Look for folders of the host that a service mounts; those that the harness fills in are its own."""
    for path, keys, scalar in _composed(context):
        short = keys == ("volumes", "[]") and re.match(r"(?:\.{0,2}/|~|\.\.?:)[^:]*:|\.\.?:", scalar.value)
        long = keys == ("volumes", "[]", "source") and re.match(r"\.{0,2}/|~", scalar.value)
        if (short or long) and not _SOCKET.search(scalar.value) and not scalar.value.startswith("/dev/"):
            yield Place(path, f"mounts {scalar.value.split(':')[0]} of the host", scalar.line)
