"""Edits of a shell script by its syntax tree: what stands between them stays as it is, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node as Syntax

from pytest_otval.checks.bash_syntax import shell_error
from pytest_otval.harden.tree import Command, Edits, commands, indent_of, nodes, statement_of, to_text
from pytest_otval.sources.editor import PatchError, TaskEditor
from pytest_otval.task.bash import bash_tree

_SHEBANG = re.compile(r"#![^\n]*(?:\n|\Z)")
_OWN_SHELL = frozenset(("subshell", "command_substitution", "process_substitution", "pipeline"))
"""What runs in a shell of its own, whose end is not the script's."""
_EXCUSES = (["true"], [":"], ["echo"], ["printf"])


class ScriptEdit:
    """One script of a task: read, edited by places in bytes, written as a whole. Raises PatchError for what is none."""

    def __init__(self, editor: TaskEditor, path: str) -> None:
        self._editor = editor
        self.path = path
        self.text = editor.text(path)
        if "\r" in self.text:
            raise PatchError(f"{path} has carriage returns: put safe_repairs() in front of this patch")
        self.source = self.text.encode()
        root = bash_tree(self.source)
        if root is None:
            raise PatchError(f"the syntax of {path} is not understood")
        self.root = root
        self.commands = tuple(commands(root))
        self.edits = Edits()

    @property
    def is_bash(self) -> bool:
        """Whether its first line names bash, and no shell that knows less."""
        first = _SHEBANG.match(self.text)
        return first is not None and "bash" in first[0]

    def at_start(self, text: str) -> None:
        """Put lines in front of everything but the line that names the shell."""
        first = _SHEBANG.match(self.text)
        head = first[0] if first is not None else ""
        self.edits.insert(len(head.encode()), text if not head or head.endswith("\n") else f"\n{text}")

    def before(self, command: Command, line: str) -> None:
        """Put a line in front of the statement that a command stands in."""
        at = statement_of(command.node).start_byte
        self.edits.insert(at, f"{line}\n{indent_of(self.source, at)}")

    def save(self) -> None:
        """Write what it has become, if a shell reads that. Raises PatchError."""
        content = self.edits.applied(self.source)
        text = to_text(content)
        if bash_tree(content) is None or (shell_error(self.text) is None and shell_error(text) is not None):
            raise PatchError(f"what {self.path} would become is no shell script")
        self._editor.write(self.path, text)


def readable(task: TaskEditor, path: str) -> ScriptEdit | None:
    """Return a script that can be edited; None for what is none."""
    try:
        return ScriptEdit(task, path)
    except PatchError:
        return None


def functions(root: Syntax) -> dict[str, Syntax]:
    """Return the bodies of a script's functions by name."""
    found = {}
    for node in nodes(root):
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if node.type == "function_definition" and name is not None and body is not None:
            found[to_text(name.text or b"")] = body
    return found


def in_own_shell(node: Syntax) -> bool:
    """Whether a piece runs in a subshell, so that what it sets and how it ends are not the script's."""
    above = node.parent
    while above is not None:
        if above.type in _OWN_SHELL:
            return True
        above = above.parent
    return False


def excuses(root: Syntax) -> Iterator[tuple[Syntax, Syntax]]:
    """Yield both sides of each ``left || right`` whose right side does nothing but succeed."""
    for node in nodes(root):
        if node.type == "list" and any(child.type == "||" for child in node.children):
            left, right = (child for child in node.named_children if child.type != "comment")
            found = list(commands(right))
            if right.type == "command" and len(found) == 1 and found[0].texts[:1] in _EXCUSES:
                yield left, right
