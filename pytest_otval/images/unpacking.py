"""How what a COPY or ADD brings gets to its place in a build's container, by the rules of BuildKit.

As there, a folder that is copied over a file or a link is refused, and so is a file over a folder; the destination
itself keeps its owner and mode where it is there.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.images.changes import RUNTIMES
from pytest_otval.images.copying import CopyError, Member
from pytest_otval.images.modes import folder_mode
from pytest_otval.images.steps import BUILD_FOLDER, CopyFromStep, CopyStep
from pytest_otval.sandbox.base import TOOLBOX, CommandResult

_BUSYBOX = f"{TOOLBOX}/busybox"
_FOLLOW = f"""
follow() {{
  path=$1 links=0
  while [ -L "$path" ] && [ $links -lt 40 ]; do
    target=$({_BUSYBOX} readlink "$path") links=$((links + 1))
    case $target in /*) path=$target ;; *) path=${{path%/*}}/$target ;; esac
  done
}}
"""
"""Follows a link that may lead to where nothing is yet, as ``readlink -f`` does not."""
MAKE = f"""{_FOLLOW}
B={_BUSYBOX}
make() {{
  [ -z "$1" ] || [ -d "$1" ] || if [ -L "$1" ]; then
    follow "$1"
    [ ! -L "$path" ] && make "$path"
  else
    make "${{1%/*}}" && $B mkdir "$1" && $B chown "$owner" "$1" && $B chmod "$mode" "$1"
  fi
}}
owner=$2 mode=$3
make "$1" || exit
"""
"""Makes a folder and those above it, or what a link there points to; all that are new get the owner and the mode."""
_WHERE = f"""{_FOLLOW}
[ -d "$1" ] && exit
follow "$1"
[ -L "$path" ] || printf %s "$path"
exit 1
"""
_CLASH = """
for entry; do
  path=${entry#?}
  case $entry in
    d*) [ -d "$path" ] && [ ! -L "$path" ] || { [ ! -e "$path" ] && [ ! -L "$path" ]; } && continue
      echo "$path is no folder, and a folder is copied over it" ;;
    *) [ -L "$path" ] || [ ! -d "$path" ] && continue
      echo "$path is a folder, and a file is copied over it" ;;
  esac
  exit 1
done
"""
"""As BuildKit refuses it."""
_UNPACK = f"""{MAKE}
cd "${{1:-/}}" || exit
shift 3
exec $B tar "$@"
"""
_UNPACK_CHECKED = f"""{MAKE}
names=$4
cd "${{1:-/}}" || exit
shift 4
$B xargs -0 -r $B sh -c '{_CLASH}' sh < "$names" || exit
exec $B tar "$@"
"""
_UNPACK_FOR = f"""{MAKE}
cd "${{1:-/}}" || exit
shift 3
own=$($B stat -c %u:%g .) bits=$($B stat -c %a .) aside=.otval-unpacked
set -o pipefail
$B mkdir $aside && $B tar -C $aside "$@" && $B chown -hR "$owner" $aside && $B tar -c -C $aside . | $B tar -xp &&
  (cd $aside && $B find . -type l -print0) | $B xargs -0 -r $B chown -h "$owner"
status=$?
$B rm -rf $aside && $B chown "$own" . && $B chmod "$bits" . && exit $status
"""
"""An archive whose files get another owner than it says."""
_GIVE = f'cd "${{1:-/}}" && exec {_BUSYBOX} xargs -0 {_BUSYBOX} chown -h "$2" < "$3"'
"""The tar of busybox gives links to nobody but root."""

Script = Callable[[str, Sequence[str], Path], CommandResult]
"""Runs a script of ours in the container with arguments and a log."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a COPY copies."""

    name: str
    """Its name in a destination folder; "" where its contents go there."""
    members: Callable[[str], Iterable[Member]] | None
    """Yields what it holds, a single file under the name given; None for an archive that is unpacked as it is."""
    archive: Callable[[Path], str] | None = None
    """Writes that archive to a path; returns the flags that unpack it."""


class Unpacker:
    """Unpacks in one container."""

    def __init__(self, script: Script, folder: Path, work: Path, maps_uids: bool) -> None:
        """``folder`` is what the container sees as ``BUILD_FOLDER``; ``work`` is for logs."""
        self._script = script
        self._folder = folder
        self._work = work
        self._maps_uids = maps_uids

    def unpack(
        self, step: CopyStep | CopyFromStep, number: int, parts: Iterable[Part], owner: tuple[int, int], log: Path
    ) -> CommandResult:
        """Unpack all parts of a step, to its first failure. Raises CopyError as they are written."""
        log.touch()
        result = CommandResult("exit", 0, 0.0, log)
        for part in parts:
            folder, name = self._place(step, part)
            archive = self._folder / f"copy-{number}.tar"
            words = [folder, f"{owner[0]}:{owner[1]}"]
            if part.members is not None:
                result = self._members(part.members(name), [*words, f"{folder_mode(step.mode):o}"], archive, log)
            else:
                assert part.archive is not None
                script = _UNPACK_FOR if step.owner and owner != (0, 0) else _UNPACK
                flags = part.archive(archive)
                result = self._script(script, [*words, "755", flags, "-f", _inside(archive)], log)
            archive.unlink()
            if not result.ok:
                break
        return result

    def _place(self, step: CopyStep | CopyFromStep, part: Part) -> tuple[str, str]:
        """Return the folder to unpack in, and the name of a file there. A link that the destination is, is followed."""
        if not part.name or step.into_folder:
            return step.destination, part.name
        where = self._work / "where.log"
        if self._script(_WHERE, [step.destination], where).ok:
            return step.destination, part.name
        folder, slash, name = where.read_text(errors="surrogateescape").rpartition("/")
        if not slash:
            raise CopyError(f"{step.destination} has too many links")
        return folder, name

    def _members(self, found: Iterable[Member], words: list[str], archive: Path, log: Path) -> CommandResult:
        names = archive.with_suffix(".names")
        links = _write(found, words[0], archive, names)
        result = self._script(_UNPACK_CHECKED, [*words, _inside(names), "-xp", "-f", _inside(archive)], log)
        for (uid, gid), paths in links.items() if self._maps_uids and result.ok else ():
            if result.ok and (uid, gid) != (0, 0):
                write_names(names, paths)
                result = self._script(_GIVE, [words[0], f"{uid}:{gid}", _inside(names)], log)
        names.unlink()
        return result


def _inside(file: Path) -> str:
    return f"{BUILD_FOLDER}/{file.name}"


def _write(found: Iterable[Member], folder: str, archive: Path, names: Path) -> dict[tuple[int, int], list[str]]:
    """Write an archive, and the kind and name of each thing in it; return the names of links by their owner.

    What the runtime mounts is no image's.
    """
    links: dict[tuple[int, int], list[str]] = {}
    listed = []
    with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
        for member in found:
            header = member.header
            if RUNTIMES.match(f"{folder.rstrip('/')}/{header.name}"):
                continue
            listed.append(f"{'d' if header.isdir() else 'f'}{header.name}")
            if header.issym():
                links.setdefault((header.uid, header.gid), []).append(header.name)
            member.add_to(tar)
    write_names(names, listed)
    return links


def write_names(file: Path, names: Iterable[str]) -> None:
    """Write names, each ended by a NUL, as ``xargs -0`` reads them."""
    file.write_bytes(b"".join(name.encode(errors="surrogateescape") + b"\0" for name in names))
