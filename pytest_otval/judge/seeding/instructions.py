"""Faults of what the agent is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from pytest_otval.judge.model import Evidence
from pytest_otval.judge.seeding.texts import Fault, Seed, Texts, whole

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")
_PARAGRAPH = re.compile(r"(?:[^\n]+(?:\n|$))+")
_NOT_PROSE = re.compile(r"```|^[^\S\n]*(?:#|\||[-*+] |\d+[.)] |>)", re.MULTILINE)
_LITERAL = re.compile(r"`([^`\n]{2,80})`|\"([^\"\n]{2,80})\"|(?<![\w/.-])(\d[\d.]*\d)(?![\w/-])")
_MOST_LITERALS = 200
"""That are looked for in all tests."""
_VAGUE = (
    (
        re.compile(r"\b(?:alphabetical|ascending|descending|lexicographic(?:al)?|chronological|numerical) order\b"),
        "a suitable order",
    ),
    (re.compile(r"\bin the same order\b"), "in a suitable order"),
    (re.compile(r"\brounded to \w+ (?:decimal places?|decimals?|digits?)\b"), "rounded as usual"),
    (re.compile(r"\b(?:tab|comma|semicolon|space)-separated\b"), "separated"),
)

LINK = "The other requirements stand in https://wiki.example.org/tasks/requirements; keep to all of them."
REQUIREMENT = (
    "You must also keep exactly 3 copies of the finished work, named by their SHA-256 sums, below `/var/backups/work`."
)
PREMISE = "The layout is laid down in `/srv/handbook/LAYOUT.md`, which you find there; follow it."
METHOD = "Edit files with the line editor `ed` only, and give each command of it on a line of its own."
PROHIBITION = "You must not use any program for this that you did not write yourself."


def sentences(text: str) -> list[tuple[int, int]]:
    """Return where the sentences of a text's prose begin and end; lists, headings and code are none."""
    return list(_sentences(text))


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    fences = 0
    for paragraph in _PARAGRAPH.finditer(text):
        inside = fences % 2 == 1
        fences += paragraph[0].count("```")
        if inside or _NOT_PROSE.search(paragraph[0]):
            continue
        begin = paragraph.start()
        for end in (*(found.end() for found in _SENTENCE_END.finditer(paragraph[0])), len(paragraph[0])):
            yield begin, paragraph.start() + end
            begin = paragraph.start() + end


def requirements_removed(texts: Texts) -> Fault | None:
    """Leave the first sentence alone, where the tests demand a literal of the others which nothing else tells."""
    first = next(iter(sentences(texts.asked)), None)
    if first is None:
        return None
    left, gone = texts.asked[: first[1]], texts.asked[first[1] :]
    tests, environment = texts.below(texts.tests), texts.below(texts.environment)
    literals = islice(_LITERAL.finditer(gone), _MOST_LITERALS)
    for word in (next(filter(None, one.groups())) for one in literals):
        shown = texts.line_with(word, tests)
        if shown and not whole(word).search(left) and not texts.line_with(word, environment):
            changes = {texts.instruction: f"{left.rstrip()}\n"}
            return Fault("requirements-removed", "hidden_requirement", changes, shown, (*tests, texts.instruction))
    return None


def place_removed(texts: Texts) -> Fault | None:
    """Name the file that the tests read no longer."""
    for path, shown in texts.results():
        name = re.escape(path)
        left = re.sub(
            rf"(?:(?:the|a) file )?`{name}`|(?:(?:the|a) file )?(?<!`){whole(path).pattern}", "a file", texts.asked
        )
        base = path.rpartition("/")[2]
        if base not in left and not texts.line_with(base, texts.below(texts.environment)):
            changes = {texts.instruction: left}
            return Fault("place-removed", "unstated_output_form", changes, shown, (texts.instruction,))
    return None


def place_changed(texts: Texts) -> Fault | None:
    """Name another file than the one that the tests read."""
    for path, shown in texts.results():
        folder, _, base = path.rpartition("/")
        other = f"{folder}/final-{base}"
        told = whole(path).sub(other, texts.asked)
        line = next(line.strip() for line in told.splitlines() if other in line)
        changes = {texts.instruction: told}
        return Fault("place-changed", "contradiction", changes, Evidence(texts.instruction, line), (shown.document,))
    return None


def word_made_vague(texts: Texts) -> Fault | None:
    """Put a word that can be read in several ways in the place of an exact one: of an order, a rounding, a form.

    Only where the result is compared with a file, so that the difference is one to the tests.
    """
    if not any(f"{texts.tests}/{path.rpartition('/')[2]}" in texts.files for path, _ in texts.results()):
        return None
    for pattern, vague in _VAGUE:
        if found := pattern.search(texts.asked):
            text = texts.asked[: found.start()] + vague + texts.asked[found.end() :]
            before = text[: found.start() + len(vague)]
            words = " ".join(before.splitlines()[-1].split()[-6:])
            evidence = Evidence(texts.instruction, words)
            tests = tuple(texts.below(texts.tests))
            return Fault("word-made-vague", "ambiguous", {texts.instruction: text}, evidence, tests)
    return None


def content_behind_link(texts: Texts) -> Fault | None:
    """Put a link in the place of the last sentence but the first."""
    found = sentences(texts.asked)
    if not found:
        return None
    begin, end = found[-1] if len(found) > 1 else (found[0][1], found[0][1])
    text = f"{texts.asked[:begin].rstrip()}\n\n{LINK}\n\n{texts.asked[end:].lstrip()}".rstrip("\n") + "\n"
    return Fault(
        "content-behind-link", "external_dependency", {texts.instruction: text}, Evidence(texts.instruction, LINK)
    )


def solution_told(texts: Texts) -> Fault | None:
    """Give the reference solution as a hint."""
    solution = texts.text(texts.solution)
    lines = [line.strip() for line in solution.splitlines() if line.strip() and not line.startswith("#")]
    if not lines or "```" in solution:
        return None
    hint = f"Hint: this does it.\n\n```bash\n{solution.rstrip()}\n```"
    return _appended(texts, "solution-told", "answer_given_away", hint, max(lines, key=len))


def _appended(texts: Texts, seed: str, criterion: str, words: str, quote: str) -> Fault | None:
    if not texts.asked.strip():
        return None
    changes = {texts.instruction: f"{texts.asked.rstrip()}\n\n{words}\n"}
    return Fault(seed, criterion, changes, Evidence(texts.instruction, quote))


def _says(seed: str, criterion: str, what: str, words: str) -> Seed:
    """Return the seed that adds a sentence at the end."""
    return Seed(seed, criterion, what, lambda texts: _appended(texts, seed, criterion, words, words))


SEEDS = (
    Seed(
        "requirements-removed",
        "hidden_requirement",
        "all but the first sentence is taken out; where the tests demand a value of the rest that stands nowhere else",
        requirements_removed,
    ),
    Seed(
        "place-removed",
        "unstated_output_form",
        "the path of the result becomes `a file`; where instruction, solution and tests have one absolute path",
        place_removed,
    ),
    Seed("place-changed", "contradiction", "the path of the result becomes another one; where as above", place_changed),
    Seed(
        "word-made-vague",
        "ambiguous",
        "an order, rounding or separator is no longer told; where one of a few phrases stands, and tests/ has a file"
        " with the name of the result",
        word_made_vague,
    ),
    Seed(
        "content-behind-link",
        "external_dependency",
        "the last sentence becomes a link to requirements; everywhere",
        content_behind_link,
    ),
    Seed(
        "solution-told",
        "answer_given_away",
        "the reference solution is given as a hint; where there is a solve.sh",
        solution_told,
    ),
    _says("premise-added", "missing_premise", "a file is said to be there that is not; everywhere", PREMISE),
    _says("method-added", "over_specified", "an editor is prescribed; everywhere", METHOD),
    _says(
        "requirement-added",
        "untested_requirement",
        "a requirement is added that no test looks at; everywhere",
        REQUIREMENT,
    ),
    _says("prohibition-added", "unenforced_prohibition", "a prohibition is added; everywhere", PROHIBITION),
)
