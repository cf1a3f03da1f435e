"""Parsing shell scripts with tree-sitter into the small tree of ``shell_ast``.

tree-sitter's grammar ties a redirect to a whole ``a && b`` or ``a | b``, and what follows ``<<EOF`` on a line to the
here-document; both are put right here. What it cannot read is no script to us: checks then say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from tree_sitter import Node as Syntax

from pytest_otval.checks import shell_ast as ast
from pytest_otval.checks.shell_words import Words, line_of, literal, text_of, with_python
from pytest_otval.task.bash import bash_tree

MAX_SCRIPT = 256 * 1024
"""Longer scripts are not looked into."""
MAX_DEPTH = 200
"""Deeper nesting is not looked into."""

_EMPTY = ast.Sequence(())


class _TooDeepError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One simple command with its words as far as they are known; what is not known is a NUL character."""

    name: str
    args: tuple[str, ...]
    line: int
    stdin: str


@dataclass(frozen=True, eq=False)
class ShellScript:
    """A parsed script."""

    body: ast.Node

    @cached_property
    def commands(self) -> tuple[ShellCommand, ...]:
        """Every simple command at any depth."""
        return tuple(_flat(simple) for simple in ast.simple_commands(self.body) if simple.words)


@lru_cache(maxsize=256)
def parse_shell(text: str) -> ShellScript | None:
    """Return a parsed script, or None where it is too long, nested too deep, or not understood."""
    data = text.replace("\r\n", "\n").encode()
    if len(data) > MAX_SCRIPT:
        return None
    root = bash_tree(data)
    if root is None:
        return None
    try:
        return ShellScript(_Lowering().sequence(root.named_children, root))
    except (_TooDeepError, RecursionError):
        return None


def _flat(simple: ast.Simple) -> ShellCommand:
    words = [known_text(word) for word in simple.words]
    stdin = known_text(simple.stdin) if simple.stdin is not None else ""
    return ShellCommand(words[0], tuple(words[1:]), simple.line, stdin)


def known_text(word: ast.Word) -> str:
    """Return a word with a NUL character in the place of each expansion."""
    parts = word.parts
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    return "".join([part if isinstance(part, str) else "\0" for part in parts])


class _Lowering:
    """One pass over the syntax tree."""

    def __init__(self) -> None:
        self.depth = 0
        self.words = Words(self.inner)
        self.rules: Mapping[str, Callable[[Syntax], ast.Node]] = {
            "command": self.command,
            "declaration_command": self.command,
            "unset_command": self.command,
            "variable_assignment": self.assignments,
            "variable_assignments": self.assignments,
            "redirected_statement": self.redirected,
            "pipeline": self.pipeline,
            "list": self.and_or,
            "negated_command": lambda node: ast.Not(self.node(_statements(node)[0])),
            "test_command": self.words.test,
            "subshell": lambda node: ast.Group(self.inner(node), (), subshell=True),
            "compound_statement": self.compound,
            "do_group": self.compound,
            "if_statement": self.branches,
            "case_statement": self.case,
            "while_statement": self.loop,
            "for_statement": self.loop,
            "c_style_for_statement": self.loop,
            "function_definition": self.function,
        }

    def sequence(self, nodes: Sequence[Syntax], parent: Syntax) -> ast.Node:
        """Lower statements; a ``&`` behind one puts it in the background."""
        wanted = {node.id for node in nodes}
        body: list[ast.Node] = []
        for child in parent.children:
            if child.type == "&" and body:
                body[-1] = ast.Background(body[-1])
            elif child.id in wanted and child.type != "comment":
                body.append(self.node(child))
        return body[0] if len(body) == 1 else ast.Sequence(tuple(body))

    def node(self, node: Syntax) -> ast.Node:
        """Lower one statement."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _TooDeepError
        rule = self.rules.get(node.type)
        lowered = ast.Test(None, False, line_of(node)) if rule is None else rule(node)
        self.depth -= 1
        return lowered

    def inner(self, node: Syntax) -> ast.Node:
        """Lower the statements right below a node."""
        return self.sequence(node.named_children, node)

    def compound(self, node: Syntax) -> ast.Node:
        """Lower ``{ }``, ``do ... done`` and ``(( ))``, which the grammar gives one name."""
        if node.children[0].type == "((":
            return self.words.test(node)
        return ast.Group(self.inner(node), (), subshell=False)

    def pipeline(self, node: Syntax) -> ast.Node:
        """Lower ``a | b``."""
        return ast.Pipeline(tuple(self.node(child) for child in _statements(node)), line_of(node))

    def function(self, node: Syntax) -> ast.Node:
        """Lower a function definition."""
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        return ast.Function(text_of(name) if name else "", self.node(body) if body else _EMPTY)

    def command(self, node: Syntax) -> ast.Simple:
        """Lower a simple command, ``export``, ``local`` and ``unset`` included."""
        words: list[ast.Word] = []
        assignments: list[ast.Assignment] = []
        redirects: list[ast.Redirect] = []
        stdin: ast.Word | None = None
        if node.type != "command":
            words.append(literal(text_of(node.children[0])))
        for child in node.children[0 if node.type == "command" else 1 :]:
            if child.type == "variable_assignment":
                assignments.append(self.assignment(child))
            elif child.type == "variable_name" and node.type == "declaration_command":
                assignments.append(ast.Assignment(text_of(child), None))
            elif child.type == "herestring_redirect":
                stdin = self.words.word(child.named_children[-1])
            elif child.type == "file_redirect":
                redirects.extend(self.redirects(child))
            elif child.type == "command_name":
                name = self.words.word(child.children[0]) if child.child_count else literal(text_of(child))
                words.append(with_python(name))
            elif child.is_named and child.type != "comment":
                words.append(with_python(self.words.word(child)))
        return ast.Simple(line_of(node), tuple(words), tuple(assignments), tuple(redirects), stdin, text_of(node))

    def assignments(self, node: Syntax) -> ast.Simple:
        """Lower assignments that stand alone."""
        items = [node] if node.type == "variable_assignment" else node.named_children
        found = tuple(self.assignment(item) for item in items if item.type == "variable_assignment")
        return ast.Simple(line_of(node), (), found, (), None, text_of(node))

    def assignment(self, node: Syntax) -> ast.Assignment:
        """Lower one assignment; of ``NAME+=`` and arrays the value is not known, but what runs in it is."""
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        plain = name is not None and name.type == "variable_name" and not any(c.type == "+=" for c in node.children)
        if value is None:
            word = literal("")
        elif plain and value.type != "array":
            word = self.words.word(value)
        else:
            items = value.named_children if value.type == "array" else [value]
            runs = (part for item in items for part in self.words.parts(item) if isinstance(part, ast.Substitution))
            word = ast.Word((ast.Opaque(), *runs))
        return ast.Assignment(text_of(name) if name else "", word)

    def redirects(self, node: Syntax) -> Iterator[ast.Redirect]:
        """Yield the output redirect that a node is, if it is one to a file."""
        operator = next((child.type for child in node.children if child.type[:1] in "<>&"), "")
        descriptor, target = node.child_by_field_name("descriptor"), node.child_by_field_name("destination")
        if target is None or operator not in (">", ">>", ">|", "&>", "&>>"):
            return
        errors_only = descriptor is not None and text_of(descriptor) not in ("1", "")
        yield ast.Redirect(self.words.word(target), operator in (">>", "&>>"), errors_only)

    def redirected(self, node: Syntax) -> ast.Node:
        """Lower a statement with redirects, which belong to the last command of a list or pipeline."""
        body = node.child_by_field_name("body")
        base = ast.Simple(line_of(node), (), (), (), None, text_of(node)) if body is None else self.node(body)
        redirects: list[ast.Redirect] = []
        stdin: ast.Word | None = None
        tails: list[tuple[str, ast.Node]] = []
        for child in node.children:
            if child.type == "file_redirect":
                redirects.extend(self.redirects(child))
            elif child.type == "herestring_redirect":
                stdin = self.words.word(child.named_children[-1])
            elif child.type == "heredoc_redirect":
                stdin = self.heredoc(child, redirects, tails)
        whole = ast.attach(base, tuple(redirects), stdin)
        for operator, tail in tails:
            whole = ast.join(whole, operator, tail, line_of(node))
        return whole

    def heredoc(self, node: Syntax, redirects: list[ast.Redirect], tails: list[tuple[str, ast.Node]]) -> ast.Word:
        """Return a here-document's text; collect the redirects and commands that follow it on its line."""
        body, quoted = ast.Word(()), False
        for child in node.children:
            if child.type == "heredoc_start":
                quoted = text_of(child)[:1] in "'\"\\"
            elif child.type == "heredoc_body":
                opaque = not quoted and any(c.type != "heredoc_content" for c in child.named_children)
                parts: tuple[ast.Part, ...] = (ast.Opaque(), text_of(child)) if opaque else (text_of(child),)
                body = ast.Word(parts)
            elif child.type == "file_redirect":
                redirects.extend(self.redirects(child))
            elif child.type == "pipeline":
                tails.extend(("|", self.node(one)) for one in _statements(child))
        operator, right = node.child_by_field_name("operator"), node.child_by_field_name("right")
        if operator is not None and right is not None:
            tails.append((operator.type, self.node(right)))
        return body

    def and_or(self, node: Syntax) -> ast.Node:
        """Lower ``a && b`` and ``a || b``."""
        operator: Literal["&&", "||"] = "&&" if any(child.type == "&&" for child in node.children) else "||"
        left, right = _statements(node)[:2]
        return ast.AndOr(self.node(left), self.node(right), operator, line_of(right))

    def branches(self, node: Syntax) -> ast.If:
        """Lower an if statement with its elif and else clauses."""
        branches = [self.branch(node)]
        otherwise: ast.Node = _EMPTY
        for child in node.named_children:
            if child.type == "elif_clause":
                branches.append(self.branch(child))
            elif child.type == "else_clause":
                otherwise = self.sequence(child.named_children, child)
        return ast.If(tuple(branches), otherwise)

    def branch(self, node: Syntax) -> tuple[ast.Node, ast.Node]:
        """Lower the condition and the body in front of the next clause."""
        then = next((index for index, child in enumerate(node.children) if child.type == "then"), 0)
        before = [child for child in node.children[:then] if child.is_named]
        after = [
            child
            for child in node.children[then:]
            if child.is_named and child.type not in ("elif_clause", "else_clause")
        ]
        return self.sequence(before, node), self.sequence(after, node)

    def case(self, node: Syntax) -> ast.Case:
        """Lower a case statement."""
        items = [child for child in node.named_children if child.type == "case_item"]
        bodies, complete = [], False
        for item in items:
            values = {child.id for child in item.children_by_field_name("value")}
            complete = complete or any(text_of(value) == "*" for value in item.children_by_field_name("value"))
            statements = [child for child in item.named_children if child.id not in values]
            bodies.append(self.sequence(statements, item))
        return ast.Case(tuple(bodies), complete)

    def loop(self, node: Syntax) -> ast.Loop:
        """Lower a loop; of a for loop the condition is nothing."""
        body = node.child_by_field_name("body")
        lowered = self.node(body) if body is not None else _EMPTY
        if node.type != "while_statement":
            return ast.Loop(_EMPTY, lowered, endless=False)
        conditions = [child for child in node.children_by_field_name("condition") if child.is_named]
        endless = len(conditions) == 1 and text_of(conditions[0]) in ("true", ":") and node.children[0].type == "while"
        return ast.Loop(self.sequence(conditions, node), lowered, endless)


def _statements(node: Syntax) -> list[Syntax]:
    return [child for child in node.named_children if child.type != "comment"]
