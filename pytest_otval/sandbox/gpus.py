"""The GPUs of this node, and what a container needs to use some of them and no other.

Only NVIDIA's driver is known. A device is the node ``/dev/nvidiaN``; the driver tells its model and UUID in
``/proc/driver/nvidia/gpus/<PCI address>/information``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pytest_otval.core import Conclusion

_DEVICES, _DRIVER = Path("/dev"), Path("/proc/driver/nvidia/gpus")
_UUID = re.compile(r"GPU-[0-9a-f-]{36}")
_LIBRARIES = "/.singularity.d/libs"
"""Where the runtime puts the driver's libraries."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device."""

    minor: int
    """N of ``/dev/nvidiaN``."""
    uuid: str = ""
    model: str = ""
    """As the driver names it, e.g. ``NVIDIA H100 80GB HBM3``."""


def suitable(gpus: Sequence[Gpu], types: Sequence[str]) -> tuple[Gpu, ...]:
    """Return the devices of one of these models; all where none is named.

    A type such as ``A100-80GB`` fits a model that has all its words; ``L4`` does not fit an L40.
    """
    wanted = [_words(type) for type in types]
    return tuple(gpu for gpu in gpus if not wanted or any(words <= _words(gpu.model) for words in wanted))


def require_gpus(gpus: Sequence[Gpu], count: int, types: Sequence[str]) -> tuple[Gpu, ...]:
    """Return the suitable devices. Raises Conclusion ``no-gpu`` where they are fewer than ``count``."""
    found = suitable(gpus, types)
    if len(found) < count:
        kind = f" of type {' or '.join(types)}" if types else ""
        raise Conclusion("no-gpu", f"the task asks for {count} GPUs{kind}, and this machine has {len(found)}")
    return found


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", name.lower()))


@cache
def node_gpus() -> tuple[Gpu, ...]:
    """Return the devices that this process may use, in PCI order; looked up once."""
    return find_gpus(_DEVICES, _DRIVER, os.environ.get("CUDA_VISIBLE_DEVICES"))


def find_gpus(devices: Path, driver: Path, visible: str | None) -> tuple[Gpu, ...]:
    """Return the devices that can be opened and that ``visible``, CUDA_VISIBLE_DEVICES if it is set, lets through.

    A device that a control group denies, as Slurm's do, has a node as well but cannot be opened.
    """
    minors = _minors(devices)
    known = {gpu.minor: gpu for gpu in (_read(path) for path in sorted(driver.glob("*/information"))) if gpu}
    order = [minor for minor in known if minor in minors] + sorted(set(minors) - set(known))
    gpus = [known.get(minor, Gpu(minor)) for minor in order if _opens(devices / f"nvidia{minor}")]
    return tuple(gpus) if visible is None else _visible(gpus, visible)


def _minors(devices: Path) -> list[int]:
    names = (path.name.removeprefix("nvidia") for path in devices.glob("nvidia[0-9]*"))
    return [int(name) for name in names if name.isdecimal()]


def _read(information: Path) -> Gpu | None:
    try:
        lines = information.read_text(errors="replace").splitlines()
    except OSError:
        return None
    values = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    minor, uuid = values.get("Device Minor", ""), values.get("GPU UUID", "")
    # The driver shows question marks until a device was used.
    uuid = uuid if _UUID.fullmatch(uuid) else ""
    return Gpu(int(minor), uuid, values.get("Model", "")) if minor.isdecimal() else None


def _opens(device: Path) -> bool:
    try:
        os.close(os.open(device, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _visible(gpus: Sequence[Gpu], visible: str) -> tuple[Gpu, ...]:
    """Read CUDA_VISIBLE_DEVICES as CUDA does: numbers or beginnings of UUIDs, up to the first that is neither."""
    chosen: list[Gpu] = []
    for word in (word.strip() for word in visible.split(",")):
        if word.isdecimal():
            found = list(gpus[int(word) : int(word) + 1])
        else:
            found = [gpu for gpu in gpus if word.startswith("GPU-") and gpu.uuid.startswith(word)]
        if len(found) != 1 or found[0] in chosen:
            break
        chosen += found
    return tuple(chosen)


def runtime_flags(gpus: Sequence[Gpu], devices: Path = _DEVICES) -> list[str]:
    """Return the runtime's flags for a container with these devices.

    ``--nv`` shows the nodes of all devices. Those not given are mounted over by themselves: as a user's bind they
    become ``nodev``, so that nobody in the container can open them, as where a control group denies them. The path
    through /proc is what makes the runtime take it as a plain bind. What all devices share (``nvidiactl``,
    ``nvidia-uvm``, ``nvidia-caps``) stays open.
    """
    if not gpus:
        return []
    flags = ["--nv"]
    for minor in sorted(set(_minors(devices)) - {gpu.minor for gpu in gpus}):
        flags += ["--bind", f"/proc/self/root/dev/nvidia{minor}:/dev/nvidia{minor}"]
    return flags


def environment(gpus: Sequence[Gpu], env: Mapping[str, str]) -> Mapping[str, str]:
    """Return ``env`` with the variables by which programs find these devices.

    Devices are numbered among those that can be opened. The variables are advice; the closed nodes are what holds.
    """
    if not gpus:
        return env
    known = all(gpu.uuid for gpu in gpus)
    names = ",".join(gpu.uuid if known else str(number) for number, gpu in enumerate(gpus))
    libraries = ":".join(part for part in (env.get("LD_LIBRARY_PATH", ""), _LIBRARIES) if part)
    return {**env, "CUDA_VISIBLE_DEVICES": names, "NVIDIA_VISIBLE_DEVICES": names, "LD_LIBRARY_PATH": libraries}
