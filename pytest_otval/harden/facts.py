"""What a task's files tell of its tests: what they import, and what configures their pytest."""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pytest_otval.checks.context import CheckContext, Source
from pytest_otval.checks.imports import imported_modules, surely_imported
from pytest_otval.checks.python_ast import parse_python
from pytest_otval.runtimes.record import Runtime
from pytest_otval.task.load import Step

INI_FILES = ("pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml")
_PLAIN_BASE = re.compile(
    r"^\s*FROM\s+(?:--platform=\S+\s+)?(?:debian|ubuntu|python|alpine)(?:[:@]\S+)?\s*$", re.I | re.M
)
_FROM = re.compile(r"^\s*FROM\s", re.I | re.M)
_FETCHES = re.compile(
    r"\bgit\b[^\n]*\bclone\b|\b(?:curl|wget)\b|^\s*ADD\s|conftest|(?:pytest|tox)\.ini|pyproject|setup\.cfg", re.M
)
_PY_NAME = re.compile(r"(\w+)\.py\b")
_SELF = ("pytest", "_pytest")
_MOST_FILES = 2000


@dataclass(frozen=True, slots=True)
class Contents:
    """What a runtime's Python has beside its own modules and pytest."""

    modules: frozenset[str] = frozenset()
    distributions: frozenset[str] = frozenset()
    """Names as pip compares them: in small letters, with ``-``."""

    @classmethod
    def of(cls, runtime: Runtime) -> Contents:
        """Return what a runtime's manifest tells."""
        modules = (_MODULE.search(path) for path in runtime.files)
        names = (re.sub(r"[-_.]+", "-", name).lower() for name in runtime.packages.get("pip", {}))
        return cls(frozenset(one[1] for one in modules if one is not None), frozenset(names))


NOTHING = Contents()
_MODULE = re.compile(r"(?:site|dist)-packages/(\w+)(?:/.+)?(?:\.[\w-]+)*\.(?:py|so)$")


@dataclass(frozen=True)
class Facts:
    """Of one step's tests."""

    context: CheckContext
    step: Step
    runtime: Contents = NOTHING
    """What the Python has that they may run in."""

    @cached_property
    def tests(self) -> dict[str, Source]:
        """The files that lie at /tests, by their path there."""
        found: dict[str, Source] = {}
        for folder in reversed(self.context.test_folders(self.step)):
            for source in self.context.sources(folder):
                found[posixpath.relpath(source.path, folder)] = source
        return found

    @cached_property
    def foreign(self) -> set[str]:
        """Modules that the tests import and that are neither Python's own nor pytest nor files of /tests."""
        python = [source.text for path, source in self.tests.items() if path.endswith(".py")]
        own = {part for path in self.tests for part in path.removesuffix(".py").split("/")}
        found = set().union(*map(modules_of, python)) - own
        # What the tests' own Python is told to run needs what that needs.
        started = any("sys.executable" in text for text in python)
        return _foreign(found | (self._of_product if started else set()))

    @cached_property
    def packages(self) -> set[str]:
        """Those of ``foreign`` that neither task nor runtime has, and what files of the task import in their turn."""
        if not self.foreign:
            return set()
        return _foreign(self.foreign | self._of_product) - self._product - self.runtime.modules

    @cached_property
    def _sources(self) -> list[Source]:
        folders = ("environment", self.context.relative(self.step.solution))
        return [source for folder in folders for source in self.context.sources(folder)][:_MOST_FILES]

    @cached_property
    def _product(self) -> set[str]:
        """Names of modules that the task brings or asks for."""
        texts = [source.text for source in self._sources if not source.path.endswith(".py")]
        instruction = self.context.source(self.context.relative(self.step.instruction))
        texts += [instruction.text] if instruction is not None else []
        named = {name for text in texts for name in _PY_NAME.findall(text)}
        files = {part for source in self._sources for part in source.path.removesuffix(".py").split("/")[1:]}
        return named | files

    @cached_property
    def _of_product(self) -> set[str]:
        return set().union(*(imported_modules(source.text) for source in self._sources if not source.is_binary))

    @cached_property
    def has_ini(self) -> bool:
        """Whether a file of /tests may configure pytest."""
        return any(posixpath.basename(path) in INI_FILES for path in self.tests)

    @cached_property
    def may_be_configured(self) -> bool:
        """Whether the image may have an ini file or a conftest.py that the tests need beside them."""
        if any(posixpath.basename(path) == "conftest.py" for path in self.tests):
            return True
        names = {posixpath.basename(entry.path) for entry in self.context.tree.under("environment")}
        if names & {"conftest.py", *INI_FILES}:
            return True
        dockerfile = self.context.source("environment/Dockerfile")
        if dockerfile is None:
            return True
        plain = len(_FROM.findall(dockerfile.text)) == len(_PLAIN_BASE.findall(dockerfile.text)) > 0
        texts = [dockerfile.text, *(source.text for source in self._sources if source.path.endswith(".sh"))]
        return not plain or any(_FETCHES.search(text) for text in texts)

    @cached_property
    def ini_has_pythonpath(self) -> bool:
        """Whether an ini file of the task sets pytest's own path for modules."""
        sources = [*self.tests.values(), *self._sources]
        return any("pythonpath" in one.text for one in sources if posixpath.basename(one.path) in INI_FILES)

    def has_pythonpath(self, script: str) -> bool:
        """Whether the tests' Python may be given modules by PYTHONPATH."""
        dockerfile = self.context.source("environment/Dockerfile")
        texts = [script, self.context.task.source, dockerfile.text if dockerfile is not None else ""]
        return any("PYTHONPATH" in text for text in texts)

    def file_of(self, path: str) -> str | None:
        """Return where /tests has the one file whose path ends as ``path`` does; None without any, or with several."""
        whole = posixpath.normpath(path).lstrip("/")
        for wanted in (whole, posixpath.basename(whole)):
            found = [name for name in self.tests if name == wanted or name.endswith(f"/{wanted}")]
            if len(found) == 1:
                return found[0]
        return None


def modules_of(text: str) -> set[str]:
    """Return the modules a Python file imports, by their first part."""
    module = parse_python(text)
    if module is None:
        return imported_modules(text)
    return set(surely_imported(module)) | (
        imported_modules(text) if "import_module" in text or "from_file" in text else set()
    )


def _foreign(names: Iterable[str]) -> set[str]:
    return set(names) - sys.stdlib_module_names - set(_SELF)
