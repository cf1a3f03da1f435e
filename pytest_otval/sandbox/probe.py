"""Which flavour this user has on this machine, found by doing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.sandbox.apptainer import FLAVOURS, ApptainerSandbox, Flavour
from pytest_otval.sandbox.base import Command, ContainerSpec, NoStartError, Sandbox
from pytest_otval.sandbox.leftovers import OwnScratch


def choose_flavour(
    names: Iterable[str], make: Callable[[Flavour], Sandbox], image: Path, scratch: OwnScratch
) -> Flavour:
    """Return the first flavour of ``names`` that can run trials here.

    Raises Conclusion ``no-start`` with what each flavour said.
    """
    misses = []
    for name in names:
        flavour = FLAVOURS[name]
        miss = why_not(make(flavour), image, scratch)
        if not miss:
            return flavour
        misses.append(f"{name}: {miss}")
    raise Conclusion("no-start", f"no way to start containers here ({'; '.join(misses)}): see doctor")


def why_not(sandbox: Sandbox, image: Path, scratch: OwnScratch) -> str:
    """Return why trials cannot run in this flavour, or "".

    A trial needs to be root in the container and to find in the next container what the last one wrote, with its
    owner where the flavour claims to map uids.
    """
    layer = scratch.new("probe")
    owner = "1:1" if sandbox.maps_uids else "0:0"
    try:
        written = _run(sandbox, image, layer, ["sh", "-c", f"echo x >/probe && busybox chown {owner} /probe && id -u"])
        if written != "0":
            return written
        found = _run(sandbox, image, layer, ["stat", "-c", "%u:%g", "/probe"])
        return "" if found == owner else f"owners are lost between containers ({owner} became {found})"
    except NoStartError as error:
        return str(error)
    finally:
        sandbox.remove(layer)


def _run(sandbox: Sandbox, image: Path, layer: Path, argv: Sequence[str]) -> str:
    log = layer.parent / f"{layer.name}.log"
    command = Command(["/.otval/busybox", *argv], log=log, env={"PATH": "/.otval"}, seconds=20)
    try:
        with sandbox.open(ContainerSpec((image,), overlay=layer)) as container:
            container.run(command)
        return log.read_text(errors="replace").strip()
    finally:
        log.unlink(missing_ok=True)


def apptainer_maker(toolbox: Path, scratch: OwnScratch, public: str) -> Callable[[Flavour], ApptainerSandbox]:
    """Return a function that makes the sandbox of a flavour."""
    return lambda flavour: ApptainerSandbox(flavour, toolbox, scratch, public)
