"""Patches of how a test script gives its reward."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from tree_sitter import Node as Syntax

from pytest_otval.checks.context import CheckContext, Script
from pytest_otval.checks.scripts import is_shell
from pytest_otval.harden.tree import Command, nodes
from pytest_otval.sources.editor import PatchError, TaskEditor
from pytest_otval.sources.library.needs import findings, found
from pytest_otval.sources.library.trap import with_floor
from pytest_otval.sources.patches import Patch
from pytest_otval.sources.scripts import ScriptEdit, excuses, readable

_LOGS = "/logs/verifier"
_REWARDS = (f"{_LOGS}/reward.txt", f"{_LOGS}/reward.json")
FOLDER = f"mkdir -p {_LOGS}\n"
CLEARED = f"rm -f {' '.join(_REWARDS)}\n"


def reward_guard() -> Patch:
    """A reward of 0 where the script ends without one, however it ends; rewards that lay there before are cleared."""

    def change(task: TaskEditor) -> None:
        for path in sorted({one.path for one in findings(task, "reward-lost-on-failure")}):
            script = ScriptEdit(task, path)
            with_floor(script)
            script.save()

    return Patch("reward-guard", "reward-lost-on-failure", change, found("reward-lost-on-failure"))


def fresh_rewards() -> Patch:
    """The folder of the reward is made, and a reward that lay there is removed, before a script that gives one."""

    def lines(script: ScriptEdit) -> str:
        if not any(_is_reward(node) for node in nodes(script.root)):
            return ""
        makes = any(one.texts[:1] == ["mkdir"] and any(map(_is_folder, one.texts)) for one in script.commands)
        clears = any(one.texts[:1] == ["rm"] and _clears(one) for one in script.commands)
        floors = _first_write_is_zero(script)
        return ("" if makes else FOLDER) + ("" if clears or floors else CLEARED)

    def change(task: TaskEditor) -> None:
        for path in _test_scripts(task):
            script = ScriptEdit(task, path)
            if text := lines(script):
                script.at_start(text)
                script.save()

    def needed(task: TaskEditor) -> bool:
        return any(lines(script) for path in _test_scripts(task) if (script := readable(task, path)) is not None)

    return Patch("fresh-rewards", "reward-stale", change, needed)


def kept_status() -> Patch:
    """The status of the tests is not thrown away by ``|| true`` or by a pipe before the script looks at it."""
    ids = ("reward-status-lost",)

    def change(task: TaskEditor) -> None:
        for _ in range(_MOST_LOST):
            lost = findings(task, *ids)
            if not lost:
                break
            script = ScriptEdit(task, lost[0].path)
            _keep_status(script, lost[0].line or 0)
            script.save()
        if always := findings(task, "reward-unconditional"):
            raise PatchError(f"{always[0].path}: the reward does not depend on the tests: a person has to mend that")
        # Where `set -e` ends the script now, it has to have given a reward.
        if findings(task, "reward-lost-on-failure"):
            reward_guard().change(task)

    return Patch("kept-status", "reward-status-lost", change, found(*ids))


_MOST_LOST = 20
"""Places of a script at which a status is thrown away."""


def _keep_status(script: ScriptEdit, line: int) -> None:
    """Take out the ``|| true`` of a line, or have the pipe there hand on the first failure. Raises PatchError."""
    for left, right in excuses(script.root):
        if right.start_point[0] + 1 == line:
            script.edits.replace(left.end_byte, right.end_byte, "")
            return
    if not script.is_bash:
        raise PatchError(f"{script.path}:{line}: the status of a pipe can be kept in bash alone")
    pipes = (node for node in nodes(script.root) if node.type == "pipeline" and node.start_point[0] + 1 == line)
    pipe = next(pipes, None)
    command = None if pipe is None else next((one for one in script.commands if _inside(one.node, pipe)), None)
    if command is None:
        raise PatchError(f"{script.path}:{line}: where the status gets lost is not understood")
    script.before(command, "set -o pipefail")


def _inside(node: Syntax, above: Syntax) -> bool:
    return above.start_byte <= node.start_byte and node.end_byte <= above.end_byte


def _scripts(context: CheckContext) -> Iterator[Script]:
    for script in context.scripts():
        source = context.source(script.path)
        if script.role == "test" and source is not None and source.whole and is_shell(source):
            yield script


def _test_scripts(task: TaskEditor) -> list[str]:
    return [script.path for script in _scripts(CheckContext(task.task))]


def _is_reward(node: Syntax) -> bool:
    """Whether a piece is the target of a redirect to a reward file."""
    if node.type != "file_redirect":
        return False
    target = node.child_by_field_name("destination")
    text = "" if target is None or target.text is None else target.text.decode("utf-8", "replace").strip("\"'")
    return text in _REWARDS


def _is_folder(text: str) -> bool:
    return text.startswith("/") and posixpath.normpath(text) == _LOGS


def _clears(command: Command) -> bool:
    texts = [word.text for word in command.words]
    return any(text in _REWARDS or text.startswith((f"{_LOGS}/*", f"{_LOGS}/reward")) for text in texts)


def _first_write_is_zero(script: ScriptEdit) -> bool:
    """Whether the script gives a 0 before anything else of a reward, at its top, whatever happens then."""
    for node in nodes(script.root):
        if _is_reward(node):
            statement = node.parent
            if statement is None or statement.parent != script.root:
                return False
            command = next((one for one in script.commands if _inside(one.node, statement)), None)
            return command is not None and command.texts in (["echo", "0"], ["echo", "0.0"], ["printf", "0"])
    return False
