"""Which Python runs a verifier's tests: the runtime's, unless they import what the image's Python alone has.

Compiled packages fit one Python only. The image's is as the agent left it, at ``masked`` and ``pristine`` as it was
built.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath

from pytest_otval.checks.imports import surely_imported
from pytest_otval.checks.python_ast import parse_python
from pytest_otval.images.lower import Lower, Node, path_parts
from pytest_otval.runtimes.record import Runtime
from pytest_otval.sandbox.base import DEFAULT_PATH
from pytest_otval.task.packed.unpack import DamagedError, Kind
from pytest_otval.task.reading import NotReadableError, is_folder, read_regular

_MAX_BYTES = 1024 * 1024
_MAX_FILES = 200
_OWN_MODULE = re.compile(r"(?:.*/)?lib/python3[^/]*/(?:(?:site|dist)-packages/)?([A-Za-z_]\w*)(?:/.*|\.py|\..*so)")


def image_python(files: Sequence[Path], env: Mapping[str, str]) -> str:
    """Return the path of an image's own ``python3``, as PATH finds it there; ``python3`` where it has none yet."""
    return _image_python(tuple(files), env.get("PATH", DEFAULT_PATH))


@lru_cache(maxsize=64)
def _image_python(files: tuple[Path, ...], path: str) -> str:
    try:
        with Lower(files) as lower:
            for folder in filter(lambda one: one.startswith("/"), path.split(":")):
                if lower.follow([*path_parts(folder), "python3"]) is not None:
                    return f"{folder.rstrip('/')}/python3"
    except (OSError, DamagedError):
        pass
    return "python3"


def only_in_image(
    tests: Iterable[Path], runtime: Runtime, files: Sequence[Path], python: str, workdir: str
) -> list[str]:
    """Return the modules that tests import and the image's Python has, but not the runtime's.

    ``tests`` are folders of the host, ``python`` is a path in the image. What the product's own modules in the workdir
    import counts as well, since tests load them.
    """
    own = sys.stdlib_module_names | {
        found.group(1) for path in runtime.files if (found := _OWN_MODULE.fullmatch(path)) is not None
    }
    wanted = {name for folder in tests for text in _texts(folder) for name in _imports(text)}
    try:
        with Lower(files) as lower:
            sites = [lower.follow(path_parts(workdir)), *_sites(lower, python)]
            product, *installed = [site[1] if site is not None else None for site in sites]
            wanted |= _of_product(lower, product, wanted - own)
            return sorted(name for name in wanted - own if any(_has(lower, site, name) for site in installed if site))
    except (OSError, DamagedError):
        return []


def _sites(lower: Lower, python: str) -> list[tuple[list[str], Node] | None]:
    prefixes = {str(PurePosixPath(python).parent.parent), "/usr", "/usr/local"}
    found = []
    for prefix in sorted(prefixes):
        top = [*path_parts(prefix), "lib"]
        library = lower.follow(top)
        names = lower.names(library[1]) if library is not None and library[1].inode.kind is Kind.FOLDER else []
        for name in names:
            if fnmatchcase(name, "python3*"):
                found += [lower.follow([*top, name, kind]) for kind in ("site-packages", "dist-packages")]
    return found


def _has(lower: Lower, folder: Node, module: str) -> bool:
    if folder.inode.kind is not Kind.FOLDER:
        return False
    names = lower.names(folder)
    return module in names or any(fnmatchcase(name, f"{module}.*") and name.endswith((".py", ".so")) for name in names)


def _of_product(lower: Lower, folder: Node | None, modules: set[str]) -> set[str]:
    """Return what those of the modules import that lie in the folder."""
    found: set[str] = set()
    if folder is None or folder.inode.kind is not Kind.FOLDER:
        return found
    todo = [child for name in modules for child in (lower.child(folder, name), lower.child(folder, f"{name}.py"))]
    for _ in range(_MAX_FILES):
        if not todo:
            break
        node = todo.pop()
        if node is None:
            continue
        if node.inode.kind is Kind.FOLDER:
            todo += [lower.child(node, name) for name in lower.names(node) if _may_hold_code(lower, node, name)]
        elif node.inode.kind is Kind.FILE:
            found.update(_imports(lower.read(node, _MAX_BYTES).decode(errors="replace")))
    return found


def _may_hold_code(lower: Lower, folder: Node, name: str) -> bool:
    child = lower.child(folder, name)
    return name.endswith(".py") or (child is not None and child.inode.kind is Kind.FOLDER)


def _texts(folder: Path) -> Iterator[str]:
    if not is_folder(folder):
        return
    for path in sorted(folder.rglob("*.py"))[:_MAX_FILES]:
        try:
            yield read_regular(path, _MAX_BYTES).decode(errors="replace")
        except (NotReadableError, FileNotFoundError, NotADirectoryError):
            continue


def _imports(text: str) -> Iterator[str]:
    module = parse_python(text)
    return surely_imported(module) if module is not None else iter(())
