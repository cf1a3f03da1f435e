"""docker-compose.yaml of a task with one plain service: what of it a single container can have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_otval.sources.adapters.base import RefusalError
from pytest_otval.sources.adapters.yamls import load_yaml

FILE = "docker-compose.yaml"

_VARIABLES = {
    "T_BENCH_TEST_DIR": "/tests",
    "T_BENCH_CONTAINER_LOGS_PATH": "/logs",
    "T_BENCH_CONTAINER_AGENT_LOGS_PATH": "/agent-logs",
}
"""What Terminal-Bench puts in place of variables, as far as a container sees it."""
_LOGS = re.compile(r"\$\{T_BENCH_TASK_(?:AGENT_)?LOGS_PATH\}:\$\{T_BENCH_CONTAINER_(?:AGENT_)?LOGS_PATH\}")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MEMORY = re.compile(r"(\d{1,9})([kmg])b?", re.IGNORECASE)
_MEGABYTES = {"k": 1 / 1024, "m": 1.0, "g": 1024.0}
_WITHOUT_EFFECT = frozenset(("image", "container_name", "tty", "stdin_open"))
"""Keys of a service that say nothing about a container that a harness starts."""


@dataclass(frozen=True, slots=True)
class Service:
    """What the one service says about its container."""

    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    cpus: float | None = None
    memory_mb: int | None = None


def read_service(source: str) -> Service:
    """Return what a compose file says. Raises RefusalError where it asks for more than one plain container."""
    data = load_yaml(source, FILE, "compose")
    services = data.get("services") if isinstance(data, dict) else None
    if not isinstance(services, dict) or not services:
        raise RefusalError("compose", f"{FILE} has no services")
    if len(services) > 1:
        raise RefusalError("compose", f"{FILE} has {len(services)} services: {', '.join(map(str, services))[:80]}")
    if others := data.keys() - {"services", "version"}:
        raise RefusalError("compose", f"{FILE} has `{', '.join(sorted(map(str, others)))[:80]}` beside its service")
    (service,) = services.values()
    if not isinstance(service, dict):
        raise _refusal("has a service that is no table")
    return _service(service)


def _service(service: Mapping[Any, Any]) -> Service:
    known: dict[str, Any] = {}
    for key, value in service.items():
        if key == "build":
            _require_plain_build(value)
        elif key == "command":
            _require_sleep(value)
        elif key == "volumes":
            _require_logs(value)
        elif key == "environment":
            known["env"] = dict(_variables(value))
        elif key == "working_dir":
            if not isinstance(value, str) or not re.fullmatch(r"(/[A-Za-z0-9._-]+)+", value):
                raise _refusal(f"has the working_dir {str(value)[:80]!r}")
            known["workdir"] = value
        elif key == "deploy":
            known.update(_limits(value))
        elif key not in _WITHOUT_EFFECT:
            raise _refusal(f"has `{key}`")
    return Service(**known)


def _refusal(what: str) -> RefusalError:
    return RefusalError("compose", f"{FILE}: the service {what}, which is no matter of a single plain container")


def _require_plain_build(value: object) -> None:
    plain = value in (".", "./") or (
        isinstance(value, dict)
        and value.keys() <= {"context", "dockerfile"}
        and value.get("context", ".") in (".", "./")
        and value.get("dockerfile", "Dockerfile") in ("Dockerfile", "./Dockerfile")
    )
    if not plain:
        raise _refusal("has another `build` than that of the Dockerfile beside it")


def _require_sleep(value: object) -> None:
    words = value.split() if isinstance(value, str) else value if isinstance(value, list) else []
    if "sleep infinity" not in " ".join(map(str, words)) or len(words) > 3:
        raise _refusal(f"has the command {str(value)[:80]!r}")


def _require_logs(value: object) -> None:
    for volume in value if isinstance(value, list) else [value]:
        if not isinstance(volume, str) or not _LOGS.fullmatch(volume.strip()):
            raise _refusal(f"has the volume {str(volume)[:80]!r}")


def _variables(value: object) -> Iterator[tuple[str, str]]:
    """Yield variables, written as a table or as ``NAME=VALUE``."""
    if isinstance(value, dict):
        pairs: Sequence[tuple[object, object]] = list(value.items())
    elif isinstance(value, list) and all(isinstance(one, str) and "=" in one for one in value):
        pairs = [tuple(one.split("=", 1)) for one in value]
    else:
        raise _refusal("has an `environment` that needs variables of the host")
    for name, content in pairs:
        text = str(content)
        if not isinstance(name, str) or not _NAME.fullmatch(name) or not text.isprintable() or content is None:
            raise _refusal(f"has the variable {str(name)[:80]!r}")
        filled = _VARIABLE.sub(lambda found: _VARIABLES.get(found[1], found[0]), text)
        if "$" in filled:
            raise _refusal(f"has the variable {name}, which needs others of the host")
        yield name, filled


def _limits(value: object) -> dict[str, Any]:
    """Return the limits of ``deploy.resources.limits``."""
    for key in ("resources", "limits"):
        if not isinstance(value, dict) or value.keys() != {key}:
            raise _refusal("has a `deploy` with more than limits")
        value = value[key]
    if not isinstance(value, dict) or not value.keys() <= {"cpus", "memory"}:
        raise _refusal("has limits of other kinds than cpus and memory")
    found: dict[str, Any] = {}
    if "cpus" in value:
        if not re.fullmatch(r"\d{1,3}(\.\d{1,3})?", str(value["cpus"])) or float(value["cpus"]) <= 0:
            raise _refusal(f"has the limit of cpus {str(value['cpus'])[:80]!r}")
        found["cpus"] = float(value["cpus"])
    if "memory" in value:
        size = _MEMORY.fullmatch(str(value["memory"]))
        if not size or (megabytes := int(int(size[1]) * _MEGABYTES[size[2].lower()])) < 1:
            raise _refusal(f"has the limit of memory {str(value['memory'])[:80]!r}")
        found["memory_mb"] = megabytes
    return found
