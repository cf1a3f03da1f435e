"""A floor under the reward of a script: 0 where it ends without one, whatever ends it."""

from __future__ import annotations

from tree_sitter import Node as Syntax

from pytest_otval.harden.tree import UNKNOWN, Command, commands, to_bytes
from pytest_otval.sources.editor import PatchError
from pytest_otval.sources.scripts import ScriptEdit, functions, in_own_shell
from pytest_otval.task.bash import bash_tree

FLOOR = "ot_reward_floor"
_SIGNALS = frozenset(("EXIT", "SIGEXIT", "0"))
GUARD = f"""\
# The reward is 0 unless this script gives another one, however it ends.
{FLOOR}() {{
    ot_status=$?
    [ -s /logs/verifier/reward.txt ] || [ -s /logs/verifier/reward.json ] || echo 0 >/logs/verifier/reward.txt
    return "$ot_status"
}}
mkdir -p /logs/verifier
rm -f /logs/verifier/reward.txt /logs/verifier/reward.json
trap {FLOOR} EXIT
"""


def with_floor(script: ScriptEdit) -> None:
    """Edit a script so that each of its ends leaves a reward. Raises PatchError where one cannot be reached."""
    if FLOOR in script.text:
        return
    script.at_start(GUARD)
    for command in script.commands:
        if in_own_shell(command.node):
            continue
        if command.texts[:1] == ["trap"] and _SIGNALS.intersection(map(str.upper, command.texts[2:])):
            _own_trap(script, command)
        elif command.texts[:1] == ["exec"] and len(command.words) > 1:
            _replaced_shell(script, command)


def _own_trap(script: ScriptEdit, command: Command) -> None:
    """Have a trap of the script's own end with the floor, or begin with it where it ends the script itself."""
    action = command.words[2 if command.texts[1] == "--" else 1]
    if action.text in ("", "-"):
        script.edits.replace(action.start, action.end, FLOOR)
        return
    if action.text.startswith("-"):
        return  # `trap -p` tells of traps and sets none
    # In braces and behind `||` nothing ends the action early, not even `set -e`, which counts in traps, too.
    first = f"'{{ {FLOOR}; '" if _ends_script(action.text, script) else "'{ '"
    last = "'\n} || :'" if _ends_script(action.text, script) else f"'\n}} || :; {FLOOR}'"
    script.edits.insert(action.start, first)
    script.edits.insert(action.end, last)


def _ends_script(action: str, script: ScriptEdit) -> bool:
    """Whether a trap's action, or a function of the script that it calls, has an ``exit`` or ``exec`` of its own."""
    bodies = functions(script.root)
    pending: list[Syntax] = [root] if (root := bash_tree(to_bytes(action.replace(UNKNOWN, "x")))) is not None else []
    seen: set[str] = set()
    while pending:
        for command in commands(pending.pop()):
            name = next(iter(command.texts), "")
            if name in ("exit", "exec"):
                return True
            if name in bodies and name not in seen:
                seen.add(name)
                pending.append(bodies[name])
    return False


def _replaced_shell(script: ScriptEdit, command: Command) -> None:
    """Run a program and end with its status, in place of becoming it: a shell that is gone runs no trap."""
    program = command.words[1]
    if program.text.startswith("-") or program.text in functions(script.root):
        raise PatchError(f"{script.path}:{command.line}: an exec that is not understood")
    script.edits.insert(command.node.start_byte, "{ ")
    script.edits.replace(command.words[0].start, program.start, "")
    script.edits.insert(command.node.end_byte, "; exit; }")
