"""Nothing of a task is loaded on the host: not its conftest.py, not its ini files, not its tests.

pytest loads ``<argument>/conftest.py`` and ``<argument>/test*/conftest.py`` before any collector is asked, so while
the initial conftests load, each argument is replaced by the conftest.py files that may be read for it.

What no plugin can keep out: pytest reads an ini file beside or above the arguments, and imports what ``-p`` and
``pythonpath`` in it name, before it loads plugins. We then refuse to go on. Started by ``glue.start``, or with an
explicit ``-c FILE``, pytest reads none of a task. And ``python -m pytest`` in a task's folder lets Python itself import
from there, unless it is ``python -P -m pytest``.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_otval.glue._compat import ini_settings, set_ini
from pytest_otval.glue.below import DATASETS
from pytest_otval.glue.selection import absolute
from pytest_otval.task.index import enclosing_dataset, has_marker, is_prepared, is_task, owner_of

_NO_CONFTEST = str(Path(__file__))
"""A file in a folder of ours; pytest looks for a conftest.py beside it and finds none."""


@contextmanager
def without_task_conftests(config: pytest.Config) -> Iterator[None]:
    """Hide what lies in datasets from the search for initial conftests. Raises UsageError for a task's ini file."""
    _refuse_ini_of_task(config)
    _keep_cache_out(config)
    cwd = config.invocation_params.dir
    _keep_imports_out(cwd)
    namespace = config.known_args_namespace
    given = namespace.file_or_dir
    wanted = given
    if not wanted and cwd == config.rootpath:
        patterns = config.getini("testpaths")
        wanted = [path for pattern in patterns for path in sorted(glob.iglob(pattern, recursive=True))]  # noqa: PTH207
    paths = [absolute(cwd / arg.partition("::")[0]) for arg in wanted]
    existing = [path for path in paths if os.path.lexists(path)]
    namespace.file_or_dir = [anchor for path in existing or [cwd] for anchor in _anchors(path)]
    try:
        yield
    finally:
        namespace.file_or_dir = given


def _refuse_ini_of_task(config: pytest.Config) -> None:
    ini = config.inipath
    # A pyproject.toml that says nothing of pytest is named by pytest too, and sets nothing.
    if ini is not None and ini_settings(config) and outside(ini.parent) != ini.parent:
        raise pytest.UsageError(
            f"{ini} lies in a task or dataset and must not configure pytest: run with `-c /dev/null`, "
            "or with the ini file of your project"
        )


def _keep_imports_out(cwd: Path) -> None:
    """Let neither this process nor xdist's workers import from a dataset that is the current folder."""
    if outside(cwd) == cwd:
        return
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").absolute() != cwd]
    os.environ["PYTHONSAFEPATH"] = "1"


def _anchors(path: Path) -> Iterator[str]:
    """Yield files whose folders, and the folders above, are all that pytest then searches for ``path``."""
    dataset = enclosing_dataset(path) or enclosing_dataset(Path(os.path.realpath(path)))
    if dataset is not None:
        yield _conftest_above(outside(dataset.parent))
        return
    yield _conftest_above(path)
    if path.is_dir():
        yield from (
            str(child / "conftest.py")
            for child in sorted(path.glob("test*"))
            if (child / "conftest.py").is_file() and not hidden(child)
        )


def outside(folder: Path) -> Path:
    """Return the folder itself, or the nearest one above it that lies in no task and no dataset."""
    real = Path(os.path.realpath(folder))
    inside = owner_of(folder) or (owner_of(real) and folder)
    while inside or _is_bare_dataset(folder):
        folder = (inside or folder).parent
        inside = owner_of(folder)
    return folder


def _is_bare_dataset(folder: Path) -> bool:
    """Whether tasks lie right in the folder, or it is prepared and lies in ``datasets/``; it needs no dataset.toml.

    A project of somebody's own that keeps its tasks in ``tasks/`` is no such folder.
    """
    if folder.parent.name == DATASETS and is_prepared(folder):
        return True
    try:
        with os.scandir(folder) as entries:
            # A link to a task makes no dataset of the folder it lies in.
            return any(entry.is_dir(follow_symlinks=False) and is_task(Path(entry.path)) for entry in entries)
    except OSError:
        return False


def _conftest_above(path: Path) -> str:
    found = (folder / "conftest.py" for folder in (path, *path.parents))
    return str(next((conftest for conftest in found if conftest.is_file()), _NO_CONFTEST))


def hidden(path: Path) -> bool:
    """Whether pytest must not go to ``path`` on its own: a task, a dataset, or a link to something in one."""
    if has_marker(path) or _is_bare_dataset(path):
        return True
    return path.is_symlink() and owner_of(Path(os.path.realpath(path))) is not None


def _keep_cache_out(config: pytest.Config) -> None:
    """Let pytest write no cache into a task or dataset that happens to be the rootdir."""
    root = Path(os.path.realpath(config.rootpath))
    if outside(root) != root or (not config.inipath and enclosing_dataset(root)):
        # What getini("cache_dir") answers; the cache itself is made, and read, before other plugins are configured.
        home = os.environ.get("OT_WORKSPACE", "")
        set_ini(config, "cache_dir", os.path.join(home, ".pytest_cache") if home else os.devnull)  # noqa: PTH118
