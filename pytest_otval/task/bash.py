"""Shell text as a syntax tree, by tree-sitter's grammar of bash."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser


def bash_root(source: bytes) -> Node:
    """Return the root of a script's tree; what the grammar does not take is an error somewhere in it."""
    return _parser().parse(source).root_node


def bash_tree(source: bytes) -> Node | None:
    """Return the root of a script's tree; None where the grammar does not take it."""
    root = bash_root(source)
    return None if root.has_error else root


def commands(root: Node) -> Iterator[Node]:
    """Yield every simple command at any depth, those in substitutions too, in the order of the text."""
    pending = [root]
    while pending:
        node = pending.pop()
        if node.type == "command":
            yield node
        pending += reversed(node.named_children)


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))
