"""A dataset's ``patch.py``: what it is made from stands in its dataset.toml, what is repaired in a few lines here.

from pytest_otval.sources.dataset import PatchedDataset
from pytest_otval.sources.library import reward_guard, safe_repairs

if __name__ == "__main__":
raise SystemExit(PatchedDataset(__file__, [safe_repairs(), reward_guard()]).main())
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from pytest_otval.core import Conclusion, OtvalUsageError, printable
from pytest_otval.harden.proposal import NewText
from pytest_otval.sources.adapters.base import Refused
from pytest_otval.sources.adapters.registry import make_adapter
from pytest_otval.sources.command_lines import AddCommand, add_effect, add_export, add_prepare
from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.files import SourceError
from pytest_otval.sources.library import pinned_bases
from pytest_otval.sources.origin import Recipe, fetch, fetched, is_fetched, read_recipe
from pytest_otval.sources.parts import Raw, Tasks
from pytest_otval.sources.patches import Patch, apply, checked, unused
from pytest_otval.sources.provenance import Origin
from pytest_otval.sources.raw import converted_tasks, harbor_tasks
from pytest_otval.sources.selection import ALL, Selection
from pytest_otval.task.index import is_prepared
from pytest_otval.workspace import Workspace

HARBOR = "harbor"
"""The adapter of tasks that are Harbor's already."""
_SHOWN = 20
"""Lines of a kind that are printed."""


class PatchedDataset:
    """A source, an adapter, patches: fetched, prepared, compared, proved and exported."""

    fetches_by_task = False
    """Whether a part of the source can be fetched for some of the tasks."""
    wants_all = False
    """Whether it is an error that a record gives no task."""

    def __init__(self, script: str, patches: Sequence[Patch] = (), workspace: Workspace | None = None) -> None:
        self.folder = Path(script).resolve().parent
        self.patches = self._given = tuple(patches)
        self._workspace = workspace

    @property
    def name(self) -> str:
        """Its folder's name."""
        return self.folder.name

    @property
    def workspace(self) -> Workspace:
        """Where it is prepared. Raises OtvalUsageError."""
        return self._workspace or Workspace.from_environment()

    @property
    def target(self) -> Path:
        """Where its tasks are, once it is prepared."""
        return self.workspace.datasets / self.name

    @property
    def sources(self) -> Path:
        """Where what was fetched is kept."""
        return self.workspace.datasets / ".sources" / self.name

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Run one command; exit status 1 where something is wrong with source or patches, 4 on wrong usage.

        8 where ``effect`` has answers that are none, and nothing worse.
        """
        arguments = self._parser().parse_args(argv)
        try:
            self.patches = checked([*self._given, *self._image_map()])
            status: int = arguments.carry_out(arguments)
        except OtvalUsageError as error:
            print(f"error: {error}", file=sys.stderr)
            return 4
        except (SourceError, Conclusion) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        return status

    def _image_map(self) -> list[Patch]:
        """Return the patch that puts the images of dataset.toml in the place of others. Raises OtvalUsageError."""
        images = read_recipe(self.folder).images
        if not images:
            return []
        after = tuple(patch.id for patch in self._given)
        return [
            replace(pinned_bases(images), id="image-map", fault="image", after=after, inputs=lambda: json.dumps(images))
        ]

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(prog="patch.py", description=f"Makes the tasks of {self.name}.")
        commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

        def add(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
            command = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
            command.set_defaults(carry_out=run)
            return command

        bring = add("fetch", self._fetch, "bring the source into the workspace, once, and verify it")
        if self.fetches_by_task:
            self.add_selection(bring)
        add_prepare(add, self)
        add("status", self._status, "tell what is fetched and prepared")
        diff = add("diff", self._diff, "print what the patches change, as a diff")
        diff.add_argument("tasks", nargs="*", metavar="TASK", help="of these tasks (default: all)")
        add_effect(add, self)
        add_export(add, self)
        check = add("check", self._check, "try the patches: exit with 1 where one is not needed, fails, or conflicts")
        self.add_selection(check)
        self.add_commands(add)
        return parser

    def add_commands(self, add: AddCommand) -> None:
        """Add commands that this dataset alone has."""

    def add_selection(self, command: argparse.ArgumentParser) -> None:
        """Add the options that ``selection`` reads."""
        command.add_argument("--only", nargs="+", metavar="TASK", help="these tasks")
        command.add_argument("--limit", type=int, metavar="N", help="the first N of the source's tasks")

    def selection(self, arguments: argparse.Namespace) -> Selection:
        """Return which tasks the command is about. Raises OtvalUsageError."""
        if arguments.limit is not None and arguments.limit < 0:
            raise OtvalUsageError("--limit is a number of tasks, 0 or more")
        only = None if arguments.only is None else frozenset(arguments.only)
        return Selection(only, arguments.limit)

    def tasks_of_source(self, selection: Selection = ALL) -> Tasks:
        """Return tasks of its source. Raises SourceError, OtvalUsageError."""
        return self.origin(selection)[1]

    def origin(self, selection: Selection = ALL) -> tuple[Origin, Tasks]:
        """Return what its tasks are made from, and the selected ones as the source has them.

        Raises SourceError, OtvalUsageError.
        """
        recipe = self.recipe_of(selection)
        adapter = None if recipe.adapter == HARBOR else make_adapter(recipe.adapter, recipe.options, self.folder)
        source = fetched(recipe, self.folder, self.sources)
        origin = Origin(
            recipe=self.recipe,
            source=recipe.source.model_dump(mode="json"),
            content=source.digest,
            adapter=recipe.adapter,
            options=recipe.options,
            version=version("pytest-otval"),
            selection=selection.words(),
            faults={patch.id: patch.fault for patch in self.patches},
        )
        tasks = harbor_tasks(source.path) if adapter is None else converted_tasks(adapter.convert(source.path))
        return origin, selection.of(tasks)

    def recipe_of(self, selection: Selection) -> Recipe:
        """Return how the selected tasks are made. Raises OtvalUsageError."""
        return read_recipe(self.folder)

    @property
    def recipe(self) -> str:
        """A digest of what makes tasks of the source."""
        # Commands that make nothing do without what it needs.
        from pytest_otval.sources.making import recipe_digest

        return recipe_digest(self.folder, self.patches)

    def _fetch(self, arguments: argparse.Namespace) -> int:
        recipe = self.recipe_of(self.selection(arguments) if self.fetches_by_task else ALL)
        print(f"{self.name}: {fetch(recipe, self.folder, self.sources)}")
        return 0

    def _status(self, arguments: argparse.Namespace) -> int:
        recipe = read_recipe(self.folder)
        print(f"source: {'fetched' if is_fetched(recipe, self.folder, self.sources) else 'not fetched'}")
        print(f"tasks: {'prepared' if is_prepared(self.target) else 'not prepared'} in {self.target}")
        return 0

    def _diff(self, arguments: argparse.Namespace) -> int:
        status = 0
        for editor, before in self._copies(Selection(frozenset(arguments.tasks) or None)):
            outcome = apply(editor, self.patches)
            after = _files(editor.folder)
            for path in sorted({*before, *after}):
                _print_diff(editor.name, NewText(path, before.get(path, b""), after.get(path, b"")))
            for line in outcome.trouble:
                status = 1
                print(printable(f"error: {editor.name}: {line}"), file=sys.stderr)
        return status

    def _check(self, arguments: argparse.Namespace) -> int:
        applied: Counter[str] = Counter()
        trouble: list[str] = []
        count = 0
        selection = self.selection(arguments)
        for editor, _ in self._copies(selection):
            count += 1
            outcome = apply(editor, self.patches)
            applied.update(outcome.applied)
            trouble += [printable(f"{editor.name}: {line}") for line in outcome.trouble]
        trouble += unused(self.patches, applied) if selection.whole else ()
        for line in trouble[:_SHOWN]:
            print(f"error: {line}")
        print(f"{self.name}: {count} tasks looked at, {len(self.patches)} patches, {len(trouble)} errors")
        return 1 if trouble else 0

    def _copies(self, selection: Selection) -> Iterator[tuple[TaskEditor, dict[str, bytes]]]:
        """Yield tasks of the source as copies to be changed, with their files as they are."""
        for task in self.tasks_of_source(selection):
            if isinstance(task, Refused):
                continue
            with _copied(task) as folder:
                yield TaskEditor(folder, self.name), _files(folder)


def _print_diff(task: str, text: NewText) -> None:
    if text.before != text.after:
        for line in text.diff(task):
            print(printable(line.decode("utf-8", "replace").rstrip("\n").replace("\t", "    ")))


@contextmanager
def _copied(task: Raw) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="otval-patch-") as scratch:
        folder = Path(scratch) / task.name
        task.write(folder)
        yield folder


def _files(folder: Path) -> dict[str, bytes]:
    """Return the content of each regular file, by path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }
