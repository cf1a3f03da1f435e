"""A dataset of pairs of releases: what its ``patch.py`` can do beyond that of other datasets."""

from __future__ import annotations

import argparse
from itertools import islice
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from pytest_otval.core import OtvalUsageError, printable
from pytest_otval.sources.command_lines import AddCommand
from pytest_otval.sources.dataset import PatchedDataset
from pytest_otval.sources.fetch import PackageIndex
from pytest_otval.sources.files import SourceError
from pytest_otval.sources.origin import Recipe, fetched
from pytest_otval.sources.releases.entry import found_entry
from pytest_otval.sources.releases.pairs import PINS, Pair, Releases, load_releases, publish_ids
from pytest_otval.sources.releases.task import TEMPLATE, Inputs, read_templates
from pytest_otval.sources.selection import Selection

if TYPE_CHECKING:
    from pytest_otval.sources.releases.laboratory import SortedIds

_WITH = "what suites need and no release declares"


class ReleaseDataset(PatchedDataset):
    """See ``PatchedDataset``. Its folder also holds releases.toml, ids/ and template/."""

    fetches_by_task = True
    wants_all = True

    def add_selection(self, command: argparse.ArgumentParser) -> None:
        """See ``PatchedDataset``."""
        super().add_selection(command)
        command.add_argument("--ci", action="store_true", help="only tasks that are run on every change")

    def selection(self, arguments: argparse.Namespace) -> Selection:
        """See ``PatchedDataset``."""
        chosen = super().selection(arguments)
        if not arguments.ci:
            return chosen
        pairs = self._releases().named(chosen.only)
        return Selection(frozenset(pair.name for pair in pairs if pair.ci), chosen.limit)

    def recipe_of(self, selection: Selection) -> Recipe:
        """See ``PatchedDataset``: files of other pairs than the selected ones need not be there."""
        recipe = super().recipe_of(selection)
        names = tuple(pair.name for pair in islice(self._releases().named(selection.only), selection.limit))
        source = recipe.source.model_copy(update={"only": names})
        return recipe.model_copy(update={"source": source, "options": {**recipe.options, "only": names}})

    def add_commands(self, add: AddCommand) -> None:
        """See ``PatchedDataset``."""
        text = "run both releases' code in a sandbox, and write the ids that pass on both"
        self.add_selection(add("ids", self._ids, text))
        mine = add("mine", self._mine, "look for further pairs of packages, and print what releases.toml needs of them")
        mine.add_argument("packages", nargs="+", metavar="PACKAGE", help="a project of the package index")
        mine.add_argument("--last", type=int, default=3, metavar="N", help="its newest N pairs (default: 3)")
        mine.add_argument("--repeat", type=int, default=2, metavar="N", help="runs on each code (default: 2)")
        mine.add_argument("--with", action="append", default=[], dest="extra", metavar="REQUIREMENT", help=_WITH)
        mine.add_argument("--deselect", action="append", default=[], metavar="ID", help="a test that is not run")

    def _releases(self) -> Releases:
        return load_releases(self.folder / PINS)

    def _ids(self, arguments: argparse.Namespace) -> int:
        from pytest_otval.sources.releases.laboratory import laboratory  # pulls the sandbox, which few commands need

        recipe = self.recipe_of(self.selection(arguments))
        folder = fetched(recipe, self.folder, self.sources).path
        releases, templates = self._releases(), read_templates(self.folder / TEMPLATE)
        pairs = releases.named(recipe.options["only"])
        failed = 0
        with laboratory(self.workspace) as lab:
            for pair in pairs:
                try:
                    runs = lab.run(Inputs(pair, (), releases.wheel_archives(pair), folder, templates), repeats=1)
                    ids = pinned_ids(pair, runs.sort())
                    publish_ids(ids, self.folder, pair)
                    print(f"{pair.name}: {len(ids)} ids pass on both codes, as pinned", flush=True)
                except SourceError as error:
                    failed += 1
                    print(printable(f"{pair.name}: {error}"), flush=True)
        print(f"{self.name}: ids: {len(pairs) - failed} of {len(pairs)} done")
        return 1 if failed else 0

    def _mine(self, arguments: argparse.Namespace) -> int:
        from pytest_otval.sources.releases.laboratory import laboratory
        from pytest_otval.sources.releases.mining import Found, Miner, Wanted
        from pytest_otval.sources.releases.needs import parsed_requirement

        if arguments.last < 1 or arguments.repeat < 2:
            raise OtvalUsageError("--last is at least 1, and --repeat at least 2, to tell flaky tests")
        extra = tuple(map(parsed_requirement, arguments.extra))
        wanted = Wanted(arguments.last, arguments.repeat, extra, tuple(arguments.deselect))
        releases, templates = self._releases(), read_templates(self.folder / TEMPLATE)
        count = 0
        with laboratory(self.workspace) as lab:
            miner = Miner(releases, templates, PackageIndex(), self.sources, lab, wanted)
            for one in (one for package in arguments.packages for one in miner.mine(canonicalize_name(package))):
                if isinstance(one, Found):
                    count += 1
                    publish_ids(one.pass_to_pass, self.folder, one.pair)
                    print(f"# {one.pair.name}: found\n{found_entry(one.pair, one.wheels)}", flush=True)
                else:
                    print(f"# {one.name}: {one.why}", flush=True)
        return 0 if count else 1


def pinned_ids(pair: Pair, found: SortedIds) -> tuple[str, ...]:
    """Return the ids that pass on both codes, less those left out. Raises SourceError where they are not as pinned."""
    if odd := sorted(set(pair.graded_fail_to_pass) - set(found.fail_to_pass)):
        where = "passes on the old code" if odd[0] in found.pass_to_pass else "does not pass on the new code"
        raise SourceError(f"{odd[0]} {where}")
    ids = tuple(one for one in found.pass_to_pass if one not in pair.left_out_ids)
    if fault := pair.why_not_the_pinned(ids):
        raise SourceError(f"{fault}: correct {PINS}, or name the odd ones in left_out")
    return ids
