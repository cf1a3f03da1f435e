"""Copies of a task's folders for a container."""

from __future__ import annotations

import shutil
from pathlib import Path

from pytest_otval.core import Conclusion


def copy_in(source: Path, target: Path) -> None:
    """Copy a folder of a task for one trial: regular files, folders, and links as links.

    Special files are left out. Scripts become executable, as Harbor makes them. Raises Conclusion ``bad-task``.
    """
    try:
        shutil.copytree(source, target, symlinks=True, ignore=special_files, dirs_exist_ok=True)
    except (OSError, shutil.Error, RecursionError) as error:
        raise Conclusion("bad-task", f"{source.name}/ cannot be copied: {str(error)[:200]}") from None
    for path in target.rglob("*.sh"):
        if not path.is_symlink() and path.is_file():
            path.chmod(path.stat().st_mode | 0o755)


def special_files(folder: str, names: list[str]) -> list[str]:
    """Return those of a folder's entries that are FIFOs, sockets or devices; for ``shutil.copytree``."""
    paths = ((name, Path(folder, name)) for name in names)
    return [name for name, path in paths if not (path.is_symlink() or path.is_dir() or path.is_file())]
