"""``patch.py effect``: stages asked before and after the patches."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_otval.core import OtvalUsageError
from pytest_otval.report.markdown import between_marks, put_between_marks
from pytest_otval.report.text import one_line
from pytest_otval.sources.effect import Effect, confirmed, effects, read_answers, regressed
from pytest_otval.sources.effect_forms import AFTER, BEFORE, Form, Forms, alone
from pytest_otval.sources.effect_tables import MARK, attack_table, joint, markdown, table
from pytest_otval.sources.files import SourceError
from pytest_otval.sources.patches import Patch
from pytest_otval.sources.told import Told

if TYPE_CHECKING:
    from pytest_otval.sources.dataset import PatchedDataset

README = "README.md"
CONFIRMING = 3
"""Attempts of what seems to have regressed, at least."""
_SHOWN = 20
"""Lines of a kind that are printed."""
_ERRORS = 8
"""Exit status where some answers are missing, and nothing is worse; as pytest's here."""


@dataclass(slots=True)
class Compared:
    """What all forms came to."""

    tasks: int
    """Of the source."""
    changed: int
    stages: Sequence[str]
    runs: list[Path]
    """Before, and after all patches."""
    found: list[Effect] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    """A line for each patch that could not be applied."""
    notes: list[str] = field(default_factory=list)
    """A line for each that cannot be applied alone."""

    def lines(self) -> Iterator[str]:
        """Yield what README.md says, as Markdown."""
        yield f"Patches change {self.changed} of {self.tasks} tasks. Asked before and after: {', '.join(self.stages)}."
        yield ""
        yield from markdown(table(self.found))
        if attacks := attack_table(self.found):
            yield ""
            yield from markdown(attacks)
        if joint(self.found):
            yield ""
            yield "A row of several patches is of the tasks that all of them change; which one did it, it cannot tell."


def run(dataset: PatchedDataset, arguments: argparse.Namespace) -> int:
    """Carry it out. Raises OtvalUsageError, SourceError."""
    _require(dataset, arguments)
    told = Told(dataset.name)
    forms = Forms(dataset, dataset.selection(arguments), arguments.n, told.say)
    compared = _compared(dataset, forms, arguments, told)
    for line in compared.lines():
        print(line)
    if arguments.html:
        from pytest_otval.sources.effect_page import write_pages

        print(f"\nhtml: {write_pages(dataset.name, compared, arguments.html)}")
    if arguments.readme:
        put_between_marks(dataset.folder / README, MARK, compared.lines())
    return _status(compared)


def _require(dataset: PatchedDataset, arguments: argparse.Namespace) -> None:
    """Raise OtvalUsageError for what would be known only after hours."""
    if not dataset.patches:
        raise OtvalUsageError(f"{dataset.name} has no patches")
    if arguments.repeat < 1:
        raise OtvalUsageError("--repeat takes a number from 1")
    if arguments.html:
        from pytest_otval.sources.effect_page import require_free

        require_free(arguments.html)
    if arguments.readme:
        between_marks(dataset.folder / README, MARK, [])


def _compared(dataset: PatchedDataset, forms: Forms, arguments: argparse.Namespace, told: Told) -> Compared:
    stages, patches = arguments.stages.split(","), tuple(dataset.patches)
    after, prepared = forms.make(AFTER, patches)
    if not after.applied:
        raise SourceError("no patch changes a task" if not prepared.trouble() else prepared.trouble()[0])
    # The others are the same tasks before and after.
    before, _ = forms.make(BEFORE, (), after.applied)
    told.end()
    runs = [forms.ask(form, sorted(after.applied), stages, arguments.repeat) for form in (before, after)]
    compared = Compared(len(prepared.tasks), len(after.applied), stages, runs, trouble=prepared.trouble())
    old = read_answers(runs[0])
    pairs = [(after, runs[1])]
    for form in _each(forms, patches, after, compared) if arguments.each else ():
        pairs.append((form, forms.ask(form, sorted(form.applied), stages, arguments.repeat)))
    found = [(form, effects(old, read_answers(asked), form.applied)) for form, asked in pairs]
    compared.found = list(_confirmed(forms, before, found, max(CONFIRMING, arguments.repeat)))
    return compared


def _each(forms: Forms, patches: tuple[Patch, ...], after: Form, compared: Compared) -> Iterator[Form]:
    """Yield a form with each patch alone, of the tasks that others change, too."""
    for patch in patches:
        names = {task for task, ids in after.applied.items() if patch.id in ids and len(ids) > 1}
        if not names:
            continue
        form, prepared = forms.make(f"alone-{patch.id}", alone(patches, patch), names)
        compared.notes += prepared.trouble()
        told_apart = {task: ids for task, ids in form.applied.items() if ids != after.applied[task]}
        told_apart = {task: ids for task, ids in told_apart.items() if patch.id in ids}
        if told_apart:
            yield Form(form.name, form.folder, told_apart)


def _confirmed(forms: Forms, before: Form, found: Sequence[tuple[Form, list[Effect]]], repeat: int) -> Iterator[Effect]:
    """Yield all items; what seems to have regressed is asked again first, on both sides: one answer may be chance."""
    worse = {one.key: one for _, of_form in found for one in regressed(of_form)}
    old = forms.ask_again(before, list(worse.values()), repeat) if worse else {}
    for form, of_form in found:
        seem = regressed(of_form)
        new = forms.ask_again(form, seem, repeat) if seem else {}
        for one in of_form:
            yield confirmed(one, old.get(one.key), new.get(one.key)) if one.became == "regressed" else one


def _status(compared: Compared) -> int:
    worse = regressed(compared.found)
    for line in compared.notes[:_SHOWN]:
        print(f"cannot be told apart: {line}")
    for line in compared.trouble[:_SHOWN]:
        print(f"error: {line}")
    for one in worse[:_SHOWN]:
        new = f" (new: {', '.join(one.new)})" if one.new else ""
        change = f"{one.before} -> {one.after}{new}: {one.after.row.headline}"
        print(one_line(f"regressed: {one.task} {one.stage} by {' + '.join(one.patches)}: {change}"))
    if len(worse) > _SHOWN:
        print(f"regressed: {len(worse) - _SHOWN} more")
    missing = sum(one.became == "no answer" for one in compared.found)
    if missing:
        print(f"no answer to {missing} items: see what pytest said")
    return 1 if worse or compared.trouble else _ERRORS if missing else 0
