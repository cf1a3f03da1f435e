"""Packing what the steps of a build made: what differs from the image below, or the whole merged view.

Each packs from a container of its own: daemons that the steps left are dead and write no more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.images.changes import LIST, NAMES, SEND, Changes, UnclearError, changes, read_lines, whiteout
from pytest_otval.images.failures import nearly_full
from pytest_otval.images.lower import Lower
from pytest_otval.images.model import Files
from pytest_otval.images.pack import PackError, packing
from pytest_otval.images.running import tail
from pytest_otval.images.steps import BUILD_FOLDER
from pytest_otval.images.unpacking import write_names
from pytest_otval.sandbox.base import TOOLBOX, Bind, Command, Container, ContainerSpec, Sandbox
from pytest_otval.task.packed.unpack import DamagedError

_BUSYBOX = f"{TOOLBOX}/busybox"
_SECONDS = 1800
_WHOLE = f"""
B={_BUSYBOX}
cd / && set --
for entry in * .[!.]* ..?* etc/* etc/.[!.]*; do
  case $entry in
    .otval|.otval-build|.singularity.d|proc|sys|dev|etc/resolv.conf|etc/hostname) continue ;;
    etc) [ -L etc ] || continue ;;
    etc/*) [ ! -L etc ] || continue ;;
  esac
  if [ -L "$entry" ]; then
    case $($B readlink "$entry") in .singularity.d/*|/.singularity.d/*) continue ;; esac
  elif [ ! -e "$entry" ]; then
    continue
  fi
  set -- "$@" "$entry"
done
exec $B tar -c --numeric-owner "$@"
"""
"""What is the runtime's own is left out: its mounts, which it makes again for each container (resolv.conf and hostname
tell of the host), and in an image of its own format its links."""


def pack_whole(sandbox: Sandbox, files: Files, overlay: Path, work: Path, target: Path) -> None:
    """Write the merged view of an image's files and a writable layer as the squashfs ``target``. Raises Conclusion."""
    log = work / "pack.log"
    with (
        _told(target, log),
        sandbox.open(ContainerSpec(files, overlay=overlay)) as container,
        packing(target, all_root=not sandbox.maps_uids) as stream,
    ):
        _run(container, _WHOLE, log, stream)


def pack_changes(sandbox: Sandbox, files: Files, overlay: Path, since: int, work: Path, target: Path) -> bool:
    """Write what a writable layer changed in an image as the squashfs ``target``; see ``changes`` for ``since``.

    Returns False where that cannot be told. Raises Conclusion.
    """
    folder, log = work / "pack", work / "pack.log"
    folder.mkdir()
    folder.chmod(0o755)
    spec = ContainerSpec(files, overlay=overlay, binds=[Bind(folder, BUILD_FOLDER)])
    with _told(target, log), sandbox.open(spec) as container:
        listing = work / "pack.list"
        with listing.open("wb") as stream:
            _run(container, LIST, log, stream.fileno())
        found = _changes(listing, files, since)
        if found is None:
            return False
        names = folder / NAMES
        write_names(names, found.changed)
        names.chmod(0o644)
        with packing(target, all_root=not sandbox.maps_uids, folders=()) as stream:
            _run(container, SEND, log, stream)
            with os.fdopen(os.dup(stream), "wb") as file:
                file.write(b"".join(whiteout(path) for path in found.removed))
                file.write(bytes(1024))
    return True


def _changes(listing: Path, files: Files, since: int) -> Changes | None:
    try:
        with Lower(files) as lower:
            return changes(read_lines(listing), lower, since)
    except (UnclearError, DamagedError):
        return None


@contextmanager
def _told(target: Path, log: Path) -> Iterator[None]:
    try:
        yield
    except (PackError, BrokenPipeError) as error:
        if nearly_full(target.parent):
            raise Conclusion("host-disk-full", f"{target.parent} is full: free some space") from None
        raise Conclusion("internal", f"the image cannot be packed: {error}", tail(log)) from None


def _run(container: Container, script: str, log: Path, stream: int) -> None:
    argv = [_BUSYBOX, "sh", "-c", script]
    result = container.run(Command(argv, log=log, stdout=stream, seconds=_SECONDS))
    if result.ended == "timeout":
        raise Conclusion("build-timeout", f"the image is not packed within {_SECONDS} s: a sparse file?")
    # A socket is not packed, as in Docker's layers; busybox counts it as an error.
    words = [line for line in tail(log).splitlines() if "unknown file type" not in line]
    if result.ended != "exit" or (not result.ok and words):
        raise PackError(words[-1] if words else f"tar: {result.ended} {result.status}")
