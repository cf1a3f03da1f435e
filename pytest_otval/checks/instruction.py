"""What stands in an instruction: text nobody filled in or nobody sees, limits that are not so, words of the harness."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.registry import Place, check
from pytest_otval.checks.said import instructions, line_at, prose
from pytest_otval.core import Severity
from pytest_otval.task.load import Step

_FEW_WORDS = 8
_SPECIFIC = re.compile(r"[/`\"'\d_.(){}=<>$](?!\s|$)")
"""Signs of a path, a name, a number or code: what a short instruction needs to say something."""


@check(
    "instruction-short",
    severity=Severity.WARNING,
    family="instruction",
    explains="A title is no instruction: an agent cannot know what the tests ask for.",
    fix="say what must be there in the end, and where",
)
def short(context: CheckContext) -> Iterator[Place]:
    """Look for instructions of a few words that name no file, number or code."""
    for source in instructions(context):
        words = source.text.split()
        if 0 < len(words) < _FEW_WORDS and source.text.isascii() and not _SPECIFIC.search(source.text.strip()):
            yield Place(source.path, f"{len(words)} words that name no file, number or code", 1)


_MARKS = ("TODO", "FIXME", "TBD")
_UNFILLED = (
    (("{",), re.compile(r"^[ \t#*\-]*(?:\{[A-Za-z_]\w*\}|\{\{[ \t]*[A-Za-z_]\w*[ \t]*\}\})[ \t*]*$", re.MULTILINE)),
    (("{{",), re.compile(r"(?<![\w${])\{\{[ \t]*[A-Za-z_][\w.\-]*[ \t]*\}\}")),
    (("orem", "OREM"), re.compile(r"(?<![\"'\u201c])\blorem ipsum dolor\b", re.IGNORECASE)),
    (
        (*_MARKS, "PLACEHOLDER", "INSERT", "YOUR"),
        re.compile(r"[<\[](?:PLACEHOLDER|TODO|TBD|FIXME|INSERT[ _][A-Z _]+|YOUR[ _](?:TASK|INSTRUCTION)[A-Z _]*)[>\]]"),
    ),
    (_MARKS, re.compile(r"^[ \t#>*\-]*(?:TODO|FIXME|TBD)\b[ \t]*(?::.*|$)", re.MULTILINE)),
)
"""A line of one ``{name}``; ``{{name}}``; the usual filler and marks, none of them in code. Each with what a text that
it matches holds: looking for that takes no time.
"""


@check(
    "instruction-placeholder",
    severity=Severity.WARNING,
    family="instruction",
    explains="The agent is given a template: what should stand in the place of the mark was never filled in.",
    fix="write what belongs there",
)
def placeholder(context: CheckContext) -> Iterator[Place]:
    """Look for marks of unfinished text outside of code."""
    for source in instructions(context):
        patterns = [pattern for signs, pattern in _UNFILLED if any(map(source.text.__contains__, signs))]
        if not any(pattern.search(source.text) for pattern in patterns):
            continue
        text = prose(source.text)
        found = [one for pattern in patterns if (one := pattern.search(text))]
        if found:
            first = min(found, key=lambda one: one.start())
            mark = first[0].strip()[:60]
            yield Place(source.path, f"never filled in: {mark}", line_at(text, first.end()))


_ZERO_WIDTH = frozenset("\u200b\u2060\u2061\u2062\u2063\u2064\ufeff\u180e\u00ad")
_JOINERS = frozenset("\u200c\u200d")
"""They shape letters of some scripts and join emoji; between plain ASCII they do nothing."""
_OVERRIDES = frozenset("\u202d\u202e")
_BIDI = frozenset("\u202a\u202b\u202c\u2066\u2067\u2068\u2069\u200e\u200f") | _OVERRIDES
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f")
"""The flags of England, Scotland and Wales are spelt with tag characters."""
_SUSPECT = re.compile(
    "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f\x00-\x08\x0b\x0e-\x1f\x7f]"
)
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")


@check(
    "instruction-hidden-text",
    severity=Severity.WARNING,
    family="instruction",
    explains="Characters that no one sees reach the agent: hidden text, or a name that is not the one shown.",
    fix="remove them",
)
def hidden_text(context: CheckContext) -> Iterator[Place]:
    """Look for tag characters, an error, and for zero-width, bidirectional and control characters, once for each."""
    for source in instructions(context):
        text = _FLAG.sub(lambda flag: " " * len(flag[0]), source.text)
        told: set[str] = set()
        for found in _SUSPECT.finditer(text):
            kind = _kind(text, found.start())
            if kind and kind not in told:
                told.add(kind)
                severity = Severity.ERROR if kind == "tag characters" else Severity.WARNING
                message = f"{kind} (U+{ord(found[0]):04X}), which nobody sees"
                yield Place(source.path, message, line_at(text, found.start()), severity)


def _kind(text: str, position: int) -> str:
    """Return what a suspect character is; empty where it stands to reason."""
    sign = text[position]
    if "\U000e0000" <= sign <= "\U000e007f":
        return "tag characters"
    if sign in _JOINERS:
        around = text[max(0, position - 1) : position] + text[position + 1 : position + 2]
        return "a zero-width joiner" if around.strip() and around.isascii() else ""
    if sign in _ZERO_WIDTH:
        return "a zero-width character"
    if sign in _BIDI:
        return "" if _RIGHT_TO_LEFT.search(text) and sign not in _OVERRIDES else "a bidirectional control"
    return "a control character" if unicodedata.category(sign) == "Cc" else ""


_UNITS = {"s": 1, "m": 60, "h": 3600}
_AMOUNT = r"(?P<about>about|around|approximately|roughly|~)?[ ]?(?P<amount>\d[\d,]*(?:\.\d+)?)[ \-]?"
_AMOUNT += r"(?P<unit>s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?)\b"
_LIMITS = (
    re.compile(rf"\byou (?:only )?have (?:up to |at most |a total of )?{_AMOUNT} (?:in total )?"
               r"(?:to (?:complete|finish|solve|do)|for) (?:this|the) (?:whole |entire )?task\b", re.IGNORECASE),
    re.compile(r"\b(?:task|agent)(?:'s)? (?:time ?limit|time ?budget|time ?-?out)(?: is| of|:)? "
               rf"{_AMOUNT}", re.IGNORECASE),
    re.compile(r"\btime (?:limit|budget) for (?:this|the) (?:whole |entire )?task(?: is| of|:)? "
               rf"{_AMOUNT}", re.IGNORECASE),
)  # fmt: skip
_EMPHASIS = re.compile(r"[*`]+|(?<!\w)_|_(?!\w)")


@check(
    "instruction-timeout",
    severity=Severity.WARNING,
    family="instruction",
    explains="The agent plans with the time that the instruction says, and is stopped at the one of task.toml.",
    fix="write the same time in both",
)
def timeout(context: CheckContext) -> Iterator[Place]:
    """Look for a stated limit of the whole task that is not the agent's."""
    for step in context.steps:
        source = context.source(context.relative(step.instruction))
        if source is None or not source.whole or step.agent_timeout is None:
            continue
        for number, line in enumerate(source.text.split("\n"), start=1):
            if "time" in line.lower() or "you " in line.lower():
                yield from _limits(step, source.path, number, _EMPHASIS.sub("", line))


def _limits(step: Step, path: str, number: int, line: str) -> Iterator[Place]:
    for pattern in _LIMITS:
        for found in pattern.finditer(line):
            stated = float(found["amount"].replace(",", "")) * _UNITS[found["unit"][0].lower()]
            slack = 0.25 if found["about"] else 0.01
            limit = step.agent_timeout or 0
            if abs(stated - limit) > slack * limit:
                yield Place(path, f"it says {found[0].strip()!r}, task.toml gives the agent {limit:g} seconds", number)


_JUDGES = ("ignore", "disregard", "forget", "grader", "judge", "reviewer", "evaluator", " score", "reward", "points")
_TO_GRADERS = re.compile(
    r"\b(?:ignore|disregard|forget) (?:all |any |the )*(?:previous|prior|above|earlier) (?:instruction|prompt|rule)s\b"
    r"|\b(?:dear|attention|note to(?: the)?) (?:graders?|judges?|reviewers?|evaluators?)\b"
    r"|\b(?:if you are|as) (?:a|an|the) (?:grader|judge|reviewer|evaluator|llm judge)\b"
    r"|\b(?:give|award|assign)(?: this| it| the)?(?: task| solution| submission)? (?:a )?"
    r"(?:full|maximum|perfect|top) (?:score|marks|reward|points)\b",
    re.IGNORECASE,
)


@check(
    "instruction-to-graders",
    severity=Severity.INFO,
    family="instruction",
    explains="Text for whoever judges does not belong to the agent, and may steer a model that judges.",
    fix="remove it, unless the task is about such text",
)
def to_graders(context: CheckContext) -> Iterator[Place]:
    """Look for text that speaks to a judge, or that asks to ignore what was said before."""
    for source in instructions(context):
        lower = source.text.lower()
        if not any(word in lower for word in _JUDGES) or not _TO_GRADERS.search(lower):
            continue
        text = prose(source.text)
        found = _TO_GRADERS.search(text)
        if found is not None:
            yield Place(source.path, f"it speaks to a judge: {found[0]}", line_at(text, found.start()))


_HARNESS = re.compile(
    r"(?<![\w.\-])/(?:tests|logs/verifier)/[\w.\-]*\w|(?<![\w.\-/])(?:tests/)?test_outputs\.py\b"
    r"|(?<![\w.\-/])(?:solution/)?solve\.sh\b|(?<![\w.\-])reward\.(?:txt|json)\b"
)
_HARNESS_NAMES = ("/tests/", "/logs/verifier/", "test_outputs.py", "solve.sh", "reward.")


@check(
    "instruction-harness",
    severity=Severity.INFO,
    family="instruction",
    explains="Files of the harness are not there while the agent works; naming them tells how the work is judged.",
    fix="say what must be there in the end, not how it is judged",
)
def harness(context: CheckContext) -> Iterator[Place]:
    """Look for mentions of the tests, the reference solution and the reward."""
    for source in instructions(context):
        found = _HARNESS.search(source.text) if any(name in source.text for name in _HARNESS_NAMES) else None
        if found is not None:
            yield Place(source.path, f"it names {found[0]}", line_at(source.text, found.start()))


_RESERVED = re.compile(r"(?<![\w.\-/])/solution/([\w.\-]+(?:/[\w.\-]+)*)")


@check(
    "instruction-reserved-path",
    severity=Severity.WARNING,
    family="instruction",
    explains="/solution is the reference solution's place: we clear it before the tests run, Harbor does not.",
    fix="ask for the file somewhere else, such as /app",
)
def reserved_path(context: CheckContext) -> Iterator[Place]:
    """Look for files that the agent is to make in /solution; those of the reference solution are another matter."""
    solutions = {context.relative(step.solution) for step in context.steps}
    for source in instructions(context):
        for found in _RESERVED.finditer(source.text) if "/solution/" in source.text else ():
            path = found[1].rstrip(".")
            if not any(context.tree.entries.get(f"{folder}/{path}") for folder in solutions):
                line = line_at(source.text, found.start())
                yield Place(source.path, f"/solution/{path} is gone before the tests run", line)
                break


_DATA_FILE = re.compile(r"\.(?:txt|json|csv|ya?ml|md|log|html|parquet|png|jsonl|tsv)[`\"']")
_RELATIVE = re.compile(
    r"(?:^|[.:;!?] |^[ \t]*(?:[-*]|\d+[.)]) |\b(?:and|then|must|should) )(?:save|write|create|store|produce|export)\b"
    r"[^\n.`\"']{0,60}\b(?:to|at|as|named|called|file)(?: the file)?:? [`\"'](?!/)"
    r"((?:[\w\-]+/)*[\w\-]+\.(?:txt|json|csv|ya?ml|md|log|html|parquet|png|jsonl|tsv))[`\"']",
    re.IGNORECASE | re.MULTILINE,
)
_SAYS_WHERE = re.compile(
    r"(?:working|current|root|project|same|repository|home|this) (?:directory|folder|dir)\b|\brepo(?:sitory)?\b|\bpwd\b"
    r"|(?<![\w.:/])/[\w\-]+",
    re.IGNORECASE,
)


@check(
    "instruction-relative-path",
    severity=Severity.INFO,
    family="instruction",
    explains="Where a relative path leads depends on where the agent happens to stand.",
    fix="write the path from /, or say which folder it is meant from",
)
def relative_path(context: CheckContext) -> Iterator[Place]:
    """Look for a file to write under a relative path in an instruction that names no folder at all."""
    for source in instructions(context):
        if not _DATA_FILE.search(source.text) or _SAYS_WHERE.search(source.text):
            continue
        found = _RELATIVE.search(source.text)
        if found is not None:
            line = line_at(source.text, found.end())
            yield Place(source.path, f"{found[1]} is relative, and no folder is named", line)
