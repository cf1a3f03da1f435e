"""Patches: small named changes of tasks, each with the proof that it is still needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pytest_otval.core import NAME, OtvalUsageError
from pytest_otval.sources.editor import PatchError, TaskEditor

Change = Callable[[TaskEditor], None]
Needed = Callable[[TaskEditor], bool]


@dataclass(frozen=True, slots=True)
class Patch:
    """One change. It is applied where it is ``needed``, and must not be needed any more afterwards."""

    id: str
    fault: str
    """The class of the fault that it repairs, as a static check or docs/patches.md names it."""
    change: Change
    needed: Needed
    tasks: tuple[str, ...] = ()
    """Names of the tasks that it is for; empty: all."""
    after: tuple[str, ...] = ()
    """Patches before it whose files it may change, too."""
    inputs: Callable[[], str] = str
    """Tells what it reads beside patch.py, so that tasks are made anew where that changed: digests, say."""

    def only(self, *tasks: str) -> Patch:
        """Return the patch for tasks of these names, each of which has to need it."""
        return replace(self, tasks=tasks)

    def is_for(self, name: str) -> bool:
        """Whether a task of this name is looked at."""
        return not self.tasks or name in self.tasks


@dataclass(slots=True)
class Outcome:
    """What patches came to on one task."""

    applied: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    """A line for each patch that could not be applied."""


def checked(patches: Iterable[Patch]) -> tuple[Patch, ...]:
    """Return patches in the order they are applied. Raises OtvalUsageError where two have one name, or name none."""
    found = tuple(patches)
    seen: set[str] = set()
    for patch in found:
        if not NAME.fullmatch(patch.id) or patch.id in seen:
            raise OtvalUsageError(f"patch {patch.id!r}: ids are unique, of letters, digits and . _ -")
        if unknown := [name for name in patch.after if name not in seen]:
            raise OtvalUsageError(f"patch {patch.id} comes after {unknown[0]!r}, which is none before it")
        seen.add(patch.id)
    return found


def in_order(patches: Iterable[Patch]) -> tuple[Patch, ...]:
    """Return patches that may change each other's files, each after all before it."""
    found: list[Patch] = []
    for patch in patches:
        before = (one.id for one in found)
        found.append(replace(patch, after=tuple(dict.fromkeys((*patch.after, *before)))))
    return tuple(found)


def apply(editor: TaskEditor, patches: Sequence[Patch]) -> Outcome:
    """Apply patches to a task, in their order; what they came to is recorded in ``[metadata.otval.patches]``.

    A patch that cannot be applied changes nothing.
    """
    outcome = Outcome()
    owners: dict[str, str] = {}
    for patch in patches:
        if not patch.is_for(editor.name):
            continue
        try:
            if _is_needed(editor, patch):
                with editor.all_or_nothing():
                    _apply(editor, patch, owners)
                outcome.applied.append(patch.id)
        except PatchError as error:
            outcome.trouble.append(f"{patch.id}: {error}")
    if outcome.applied:
        _record(editor, [patch for patch in patches if patch.id in outcome.applied])
    return outcome


def _is_needed(editor: TaskEditor, patch: Patch) -> bool:
    needed = patch.needed(editor)
    if patch.tasks and not needed:
        raise PatchError("is no longer needed: the source was repaired, remove the patch")
    return needed


def _apply(editor: TaskEditor, patch: Patch, owners: dict[str, str]) -> None:
    """Apply a patch; ``owners`` has, by path, which one changed a file last. Raises PatchError."""
    patch.change(editor)
    changed = editor.changed()
    if not changed:
        raise PatchError("changes nothing")
    if patch.needed(editor):
        raise PatchError("is still needed after it was applied: it does not repair what it is for")
    for path in changed:
        owner = owners.get(path)
        if owner is not None and owner not in patch.after:
            raise PatchError(f"conflicts with {owner}: both change {path}; say after=({owner!r},) where that is right")
    owners.update(dict.fromkeys(changed, patch.id))


def _record(editor: TaskEditor, patches: Iterable[Patch]) -> None:
    """Say in task.toml what was repaired. A task without a readable one has no place for it."""
    with suppress(PatchError):
        editor.put("metadata.otval.patches", {patch.id: patch.fault for patch in patches})


def unused(patches: Iterable[Patch], applied: Mapping[str, int]) -> list[str]:
    """Return a line for each patch that no task needed."""
    return [
        f"{patch.id}: no task needs it: the source was repaired, or the patch was never right; remove it"
        for patch in patches
        if not applied.get(patch.id)
    ]
