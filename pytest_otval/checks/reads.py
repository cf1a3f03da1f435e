"""Files that Python tests surely read: absolute paths in them whose every use is a read, and that no test may make."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from itertools import pairwise

from pytest_otval.checks.py_paths import known_names, text_of
from pytest_otval.checks.python_ast import dotted, parse_python
from pytest_otval.checks.shell import parse_shell

ABSOLUTE = re.compile(r"/[\w.@+\-]+(?:/[\w.@+\-]+)+")
"""A path of at least two parts without wildcards."""
MAX_PYTHON = 100 * 1024
"""Longer files are not looked into: a walk takes a second a megabyte and more."""
_MAX_PROGRAMS = 20
_READERS = re.compile(r"(?:[\w.]*\.)?(?:read_\w+|load|loadtxt|genfromtxt|imread|getsize)|os\.stat")
_METHODS = frozenset(("read_text", "read_bytes", "stat"))
_PROBES = frozenset(("exists", "is_file", "is_dir", "isfile", "isdir"))
_SAYING = re.compile(r"(?:pytest\.)?(?:fail|skip|xfail)|print|(?:self\.)?fail|log\w*\.\w+|warnings\.warn")
_FAILING = re.compile(r"(?:pytest\.|self\.|sys\.)?(?:fail|exit)")


class _Use(Enum):
    """What one use of a path tells."""

    NOTHING = auto()
    READ = auto()
    """The file must be there."""
    PERHAPS = auto()
    """The tests may make it, or do without it."""


@dataclass
class Uses:
    """The uses of absolute paths in a Python file."""

    reads: dict[str, int] = field(default_factory=dict)
    """Paths that must be there, with the line of the first read."""
    perhaps: set[str] = field(default_factory=set)
    """Paths that the tests may make, or do without."""
    texts: list[str] = field(default_factory=list)
    """Texts that are no path and no message: commands, which may make files."""


@lru_cache(maxsize=64)
def uses_of_paths(text: str) -> Uses:
    """Return how a Python file uses absolute paths; nothing where it cannot be parsed."""
    module = parse_python(text) if len(text) <= MAX_PYTHON else None
    try:
        return Uses() if module is None else _Walk(module).uses
    except RecursionError:
        return Uses()


class _Walk:
    """One walk over a module, which knows the way down to each node."""

    def __init__(self, module: ast.Module) -> None:
        self.uses = Uses()
        self.way: list[ast.AST] = []
        self.known = known_names(module)
        self.visit(module)

    def visit(self, node: ast.AST) -> None:
        """Judge a path, keep a text, or go down."""
        if isinstance(node, ast.expr) and (text := text_of(node, self.known)) is not None:
            self.text(node, text)
            return
        self.way.append(node)
        for child in ast.iter_child_nodes(node):
            self.visit(child)
        self.way.pop()

    def text(self, node: ast.expr, text: str) -> None:
        """Take in one use of a known text."""
        is_message = self.is_message(node)
        if not ABSOLUTE.fullmatch(text):
            if not is_message and "/" in text:
                self.uses.texts.append(text)
            return
        use = _Use.NOTHING if is_message else self.use(node)
        if use is _Use.READ:
            self.uses.reads.setdefault(text, node.lineno)
        elif use is _Use.PERHAPS:
            self.uses.perhaps.add(text)

    def is_message(self, node: ast.expr) -> bool:
        """Whether a text is a docstring, the message of an assertion, or what is printed or raised."""
        chain = [node, *reversed(self.way)]
        for child, parent in pairwise(chain):
            if isinstance(parent, ast.Call):
                return bool(_SAYING.fullmatch(dotted(parent.func)))
            if isinstance(parent, ast.Assert):
                return child is parent.msg
            if isinstance(parent, ast.Raise | ast.Expr):
                return True
            if isinstance(parent, ast.stmt):
                return False
        return False

    def use(self, node: ast.expr) -> _Use:
        """Judge one use of a path by what stands around it."""
        match self.way[-1]:
            case ast.Assign(targets=[ast.Name()]) | ast.AnnAssign(target=ast.Name()):
                return _Use.NOTHING  # the uses of the name count
            case ast.Attribute() as attribute:
                return self.method(attribute)
            case ast.Call() as call:
                return self.argument(call, node)
        return _Use.PERHAPS

    def method(self, attribute: ast.Attribute) -> _Use:
        """Judge ``PATH.name``."""
        if attribute.attr in ("parent", "name", "stem", "suffix"):
            return _Use.NOTHING
        call = self.way[-2]
        if not isinstance(call, ast.Call) or call.func is not attribute:
            return _Use.PERHAPS
        if attribute.attr in _PROBES:
            return self.probe(call)
        if attribute.attr == "open":
            return self.opened(call.args[:1], call)
        return self.read() if attribute.attr in _METHODS else _Use.PERHAPS

    def argument(self, call: ast.Call, node: ast.expr) -> _Use:
        """Judge ``function(PATH)``."""
        name = dotted(call.func)
        if not call.args or call.args[0] is not node:
            return _Use.PERHAPS
        if name.startswith("os.path.") and name.rpartition(".")[2] in _PROBES:
            return self.probe(call)
        if name in ("open", "io.open", "codecs.open"):
            return self.opened(call.args[1:2], call)
        return self.read() if _READERS.fullmatch(name) else _Use.PERHAPS

    def opened(self, mode: list[ast.expr], call: ast.Call) -> _Use:
        """Judge ``open`` by its mode."""
        given = [*mode, *(one.value for one in call.keywords if one.arg == "mode")]
        constant = given[0].value if given and isinstance(given[0], ast.Constant) else "w" if given else "r"
        return self.read() if isinstance(constant, str) and not set(constant) & set("wax+") else _Use.PERHAPS

    def probe(self, call: ast.Call) -> _Use:
        """Judge ``exists`` and its like: what is asserted must be there, what is asked for may be."""
        chain = [call, *(one for one in reversed(self.way) if one is not call and one is not call.func)]
        match chain[1:3]:
            case [ast.Assert(), *_]:
                return self.read()
            case [ast.BoolOp(op=ast.And()), ast.Assert()]:
                return self.read()
            case [ast.UnaryOp(op=ast.Not()), ast.If(body=body)] if _fails(body):
                return _Use.NOTHING
        return _Use.PERHAPS

    def read(self) -> _Use:
        """Judge a read: where a handler or a condition bears its absence, the file need not be there."""
        for parent in self.way:
            match parent:
                case ast.Try(handlers=handlers) if not all(_fails(handler.body) for handler in handlers):
                    return _Use.PERHAPS
                case ast.With(items=items) if any(_bears(item.context_expr) for item in items):
                    return _Use.PERHAPS
                case ast.IfExp() | ast.If() | ast.BoolOp(op=ast.Or()):
                    return _Use.PERHAPS
        return _Use.READ


def _bears(manager: ast.expr) -> bool:
    """Whether a context manager swallows or expects an exception."""
    return isinstance(manager, ast.Call) and dotted(manager.func).rpartition(".")[2] in ("suppress", "raises")


def _fails(body: Iterable[ast.stmt]) -> bool:
    """Whether statements end with a failure."""
    for node in body:
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            if _FAILING.fullmatch(dotted(node.value.func)):
                return True
        elif isinstance(node, ast.Assert):
            return isinstance(node.test, ast.Constant) and not node.test.value
    return False


@dataclass(frozen=True, slots=True)
class Program:
    """A Python program of the tests: a file, or a text that a shell script hands to an interpreter."""

    path: str
    text: str
    above: int
    """Lines of the file in front of the text."""


def programs(texts: Mapping[str, str]) -> tuple[list[Program], str]:
    """Return the Python programs among the files of one /tests, and the text of all that is none."""
    found: list[Program] = []
    rest: list[str] = []
    for path, text in texts.items():
        if path.endswith(".py"):
            found.append(Program(path, text, 0))
            continue
        script = parse_shell(text) if path.endswith(".sh") and "python" in text else None
        for command in script.commands if script is not None else ():
            if len(found) >= _MAX_PROGRAMS:
                break
            name = posixpath.basename(command.name)
            if name.startswith("python") and command.stdin in text and command.stdin.count("\n") > 1:
                above = text.count("\n", 0, text.index(command.stdin))
                found.append(Program(path, command.stdin, above))
                text = text.replace(command.stdin, "\n")
        rest.append(text)
    return found, "\n".join(rest)


def required_paths(texts: Mapping[str, str], names: Collection[str]) -> dict[str, tuple[str, int]]:
    """Return the absolute paths with one of the ``names`` that Python tests surely read, each with a file and a line.

    ``texts`` are the contents of all files of /tests by path; a path that another of them mentions may be made there.
    """
    if not names:
        return {}
    found, rest = programs({path: text for path, text in texts.items() if any(name in text for name in names)})
    uses = [(program, uses_of_paths(program.text)) for program in found]
    perhaps = set[str]().union(*(one.perhaps for _, one in uses))
    loose = "\n".join([text for _, one in uses for text in one.texts])
    return {
        path: (program.path, line + program.above)
        for program, one in uses
        for path, line in one.reads.items()
        if (name := path.rpartition("/")[2]) in names
        and path not in loose
        and name not in rest
        and perhaps.isdisjoint(_around(path))
    }


def _around(path: str) -> list[str]:
    """Return a path and the folders around it."""
    return [path, *(path[:index] for index, sign in enumerate(path) if sign == "/")]
