"""``runtimes/NAME/``: ``runtime.toml`` says what a runtime is, ``install.sh`` installs it into ``$OT_RUNTIME``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tomli
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from pytest_otval.core import NAME, OtvalUsageError
from pytest_otval.images.bases import file_digest
from pytest_otval.runtimes.record import PATH, PATH_BELOW, ROOT

PACKAGED = Path(__file__).parents[1] / "data" / "runtimes"
"""The recipes that come with the package."""
SCRIPT, TOML = "install.sh", "runtime.toml"


class RecipeFile(BaseModel):
    """``runtime.toml``. Unknown keys are errors, since a misspelt one would be ignored in silence."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str
    """One line."""
    base: str
    """The image that it is installed in, as a Dockerfile's FROM names it; nothing of it is in the runtime."""
    common: Annotated[str, StringConstraints(pattern=rf"^{NAME.pattern}$")] = ""
    """A folder beside the recipe's, whose files install.sh finds beside itself: several recipes may share it."""
    path: Annotated[str, StringConstraints(pattern=rf"^{PATH.pattern}$")] = ""
    """Its folder in containers (default: NAME in the folder of all runtimes)."""
    python: Annotated[str, StringConstraints(pattern=rf"^{PATH_BELOW.pattern}$")] = ""
    """Its Python, below ``path``, if it has one."""
    seconds: Annotated[float, Field(gt=0)] = 1800
    """How long install.sh may take."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe as it was read."""

    name: str
    folder: Path
    file: RecipeFile

    @property
    def path(self) -> str:
        """The runtime's folder in containers."""
        return self.file.path or f"{ROOT}/{self.name}"

    @property
    def common(self) -> Path | None:
        """The folder that it shares with other recipes."""
        return self.folder.parent / self.file.common if self.file.common else None

    @property
    def id(self) -> str:
        """The id of what it makes: over paths and contents of its files."""
        return runtime_id(self.name, *(part for path, name in self._files() for part in (name, file_digest(path))))

    def _files(self) -> list[tuple[Path, str]]:
        """Return its files, and what install.sh calls them."""
        return sorted(
            (path, path.relative_to(folder).as_posix())
            for folder in filter(None, (self.folder, self.common))
            for path in folder.rglob("*")
            # Installing the package compiles what is Python in it.
            if path.is_file() and "__pycache__" not in path.parts
        )


def runtime_id(name: str, *inputs: str) -> str:
    """Return the id of a runtime that is made from ``inputs``."""
    inputs_text = "\0".join((name, *inputs))
    return f"{name}-{hashlib.sha256(inputs_text.encode()).hexdigest()[:12]}"


def find_recipe(name: str, rootdir: Path | None = None) -> Recipe | None:
    """Return the recipe of a name, from ``runtimes/NAME`` in ``rootdir`` (the cwd if None), else from the package.

    None where there is none. Raises OtvalUsageError for one that is wrong.
    """
    for folder in _places(rootdir):
        if NAME.fullmatch(name) and (folder / name / TOML).is_file():
            return _read(folder / name)
    return None


def recipe_names(rootdir: Path | None = None) -> list[str]:
    """Return the names of all recipes."""
    return sorted({path.parent.name for folder in _places(rootdir) for path in folder.glob(f"*/{TOML}")})


def _places(rootdir: Path | None) -> Iterator[Path]:
    yield (rootdir or Path.cwd()) / "runtimes"
    yield PACKAGED


def _read(folder: Path) -> Recipe:
    file = folder / TOML
    if not (folder / SCRIPT).is_file():
        raise OtvalUsageError(f"{folder} has no {SCRIPT}: a recipe has {TOML} and {SCRIPT}")
    try:
        recipe = Recipe(folder.name, folder, RecipeFile(**tomli.loads(file.read_text(encoding="utf-8"))))
    except (tomli.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise OtvalUsageError(f"{file}: cannot be read: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise OtvalUsageError(f"{file}: {where}: {first['msg']}") from None
    if recipe.common is not None and not recipe.common.is_dir():
        raise OtvalUsageError(f"{file}: common: there is no folder {recipe.common}")
    return recipe
