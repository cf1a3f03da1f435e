"""Words and tests of a shell script, from tree-sitter's syntax tree into that of ``shell_ast``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tree_sitter import Node as Syntax

from pytest_otval.checks import shell_ast as ast


def text_of(node: Syntax) -> str:
    """Return the text of a node; bytes that are not UTF-8 become U+FFFD."""
    return (node.text or b"").decode("utf-8", "replace")


def line_of(node: Syntax) -> int:
    """Return a node's first line, 1-based."""
    return node.start_point.row + 1


def literal(text: str) -> ast.Word:
    """Return a word without expansions."""
    return ast.Word((text,))


def with_python(word: ast.Word) -> ast.Word:
    """Return a word of a command, with a Python's name for the one that a verifier is given."""
    match word.parts:
        case (ast.Variable(name="OT_PYTHON", default=None),):
            return literal("python3")
        case (ast.Variable(name="OT_PYTHON", default=ast.Word(parts=(str(),)) as default),):
            return default
    return word


class Words:
    """Lowers words; ``statements`` lowers what stands inside a ``$(...)``."""

    def __init__(self, statements: Callable[[Syntax], ast.Node]) -> None:
        self.statements = statements

    def test(self, node: Syntax) -> ast.Test:
        """Lower a test; of ``&&``, ``||``, ``-a`` and their like the answer is not known."""
        arithmetic = node.children[0].type == "(("
        inner = [child for child in node.named_children if child.type != "comment"]
        negated = False
        while len(inner) == 1 and inner[0].type == "unary_expression" and inner[0].children[0].type == "!":
            negated = not negated
            inner = inner[0].named_children
        condition = self.condition(inner[0], arithmetic) if len(inner) == 1 else None
        return ast.Test(condition, negated, line_of(node))

    def condition(self, node: Syntax, arithmetic: bool) -> ast.Compare | ast.Probe | None:
        """Lower the inside of a test."""
        if arithmetic and node.type == "variable_name":
            return ast.Compare("-ne", self.operand(node), literal("0"))
        if node.type == "unary_expression" and len(node.named_children) == 2:
            probe, word = node.named_children
            return ast.Probe(text_of(probe), self.operand(word)) if probe.type == "test_operator" else None
        if node.type == "binary_expression":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            sign = node.child_by_field_name("operator")
            if left is None or right is None or sign is None:
                return None
            operator = _ARITHMETIC.get(text_of(sign), "") if arithmetic else text_of(sign)
            known = operator in _COMPARISONS and "expression" not in left.type and "expression" not in right.type
            return ast.Compare(operator, self.operand(left), self.operand(right)) if known else None
        return ast.Probe("-n", self.operand(node)) if not arithmetic and node.type in _OPERANDS else None

    def operand(self, node: Syntax) -> ast.Word:
        """Lower a word of a test, where names in ``(( ))`` stand without a dollar."""
        if node.type == "variable_name":
            return ast.Word((ast.Variable(text_of(node)),))
        return self.word(node)

    def word(self, node: Syntax) -> ast.Word:
        """Lower one word."""
        return ast.Word(tuple(self.parts(node)))

    def parts(self, node: Syntax) -> Iterator[ast.Part]:
        """Yield the parts of a word."""
        match node.type:
            case "word" if not node.named_child_count:
                yield _unescape(text_of(node))
            case "number" | "heredoc_content" | "test_operator" | "file_descriptor" if not node.named_child_count:
                yield text_of(node)
            case "string_content":
                yield _unescape_quoted(text_of(node))
            case "raw_string":
                yield text_of(node)[1:-1]
            case "string":
                yield from self.string(node)
            case "concatenation":
                for child in node.children:
                    yield from self.parts(child)
            case "simple_expansion":
                # The grammar gives blanks in front of it to an expansion in a string.
                blanks, _, name = text_of(node).partition("$")
                if blanks:
                    yield blanks
                yield ast.Variable(name)
            case "expansion":
                yield self.expansion(node)
            case "command_substitution":
                yield ast.Substitution(self.statements(node))
            case _:
                yield ast.Opaque()

    def string(self, node: Syntax) -> Iterator[ast.Part]:
        """Yield the parts of a double-quoted string; the grammar drops blanks between two expansions."""
        position = node.start_byte + 1
        for child in node.children[1:-1]:
            if child.start_byte > position:
                yield (node.text or b"")[position - node.start_byte : child.start_byte - node.start_byte].decode(
                    "utf-8", "replace"
                )
            yield from self.parts(child)
            position = child.end_byte
        if (end := node.end_byte - 1) > position:
            yield (node.text or b"")[position - node.start_byte : end - node.start_byte].decode("utf-8", "replace")

    def expansion(self, node: Syntax) -> ast.Part:
        """Lower ``${NAME}`` and ``${NAME:-word}``; of other forms the value is not known."""
        inner = node.children[1:-1]
        if len(inner) == 1 and inner[0].type in ("variable_name", "special_variable_name"):
            return ast.Variable(text_of(inner[0]))
        if len(inner) in (2, 3) and inner[0].type == "variable_name" and inner[1].type in (":-", "-"):
            default = self.word(inner[2]) if len(inner) == 3 else literal("")
            return ast.Variable(text_of(inner[0]), default)
        return ast.Opaque()


_ARITHMETIC = {"==": "-eq", "!=": "-ne", ">": "-gt", "<": "-lt", ">=": "-ge", "<=": "-le"}
_COMPARISONS = ("-eq", "-ne", "-gt", "-lt", "-ge", "-le", "=", "==", "!=")
_OPERANDS = ("string", "raw_string", "word", "number", "simple_expansion", "expansion", "concatenation")


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out, position = [], 0
    while position < len(text):
        if text[position] == "\\" and position + 1 < len(text):
            position += 1
            if text[position] == "\n":
                position += 1
                continue
        out.append(text[position])
        position += 1
    return "".join(out)


def _unescape_quoted(text: str) -> str:
    for char in '"$`\\':
        text = text.replace("\\" + char, char)
    return text.replace("\\\n", "")
