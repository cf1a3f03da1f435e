"""What the linters find that matters to a task: a short list of their rules, each with its reason.

Most rules of both are about style or about machines that live long; of a task's scripts the question is whether they
do what they say, once, in one container. Pins of apt, cd without a guard and unquoted variables are left out: on real
tasks they are nearly all that the linters say, and no reason to mend a task.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.docker_view import Image, images
from pytest_otval.checks.linters import MAX_TEXT, Linter, hadolint, shellcheck
from pytest_otval.checks.registry import Check, Place
from pytest_otval.checks.scripts import is_shell
from pytest_otval.core import Severity
from pytest_otval.task.dockerfile import Instruction

_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO

SHELL_RULES: Mapping[str, tuple[Severity, str]] = {
    "SC2050": (_W, "a condition of constants: the branch that writes the reward may always be the same"),
    "SC2157": (_W, "-n or -z of a constant text: as SC2050"),
    "SC2078": (_W, "a condition of one constant word: as SC2050"),
    "SC2055": (_W, "a != x or a != y, which is always true"),
    "SC2070": (_W, "-n of an unquoted variable, which is true for nothing as well"),
    "SC2077": (_E, "no blanks around the comparison: one word, which is always true"),
    "SC2071": (_W, "> and < between numbers in [[ ]] compare texts: 10 is less than 9"),
    "SC2072": (_E, "a comparison of integers with a decimal number: an error message, never an answer"),
    "SC2170": (_W, "a comparison of integers with a word: an error message, never an answer"),
    "SC2319": (_W, "$? of a condition, where that of the tests is meant"),
    "SC2320": (_W, "$? of echo or printf, where that of the tests is meant"),
    "SC2093": (_W, "exec replaces the shell: what stands below, a reward perhaps, never runs"),
    "SC2194": (_W, "case of a constant word: one branch is taken whatever happened"),
    "SC2259": (_W, "a redirect takes the place of the pipe: what is piped in is lost"),
    "SC2261": (_W, "two redirects of one output: only the last file gets it"),
    "SC2281": (_E, "a dollar in front of an assigned name: the shell looks for a program of that name"),
    "SC2283": (_W, "blanks around = : the shell runs a program of the variable's name"),
    "SC2242": (_W, "exit with a number that is no status"),
    "SC2104": (_W, "break or continue where there is no loop around"),
}
"""Rules of shellcheck that say what a script surely does, other than what its author meant."""

SH_RULES: Mapping[str, tuple[Severity, str]] = {
    "SC3001": (_W, "process substitution, a syntax error of dash"),
    "SC3010": (_W, "[[ ]], which dash takes for a program"),
    "SC3011": (_W, "a here-string, a syntax error of dash"),
    "SC3014": (_W, "== in [ ], which dash does not know"),
    "SC3020": (_W, "&>, by which dash starts a process in the background"),
    "SC3030": (_W, "an array, a syntax error of dash"),
    "SC3040": (_W, "set -o pipefail, which dash refuses before version 0.5.13"),
    "SC3046": (_W, "source, which dash takes for a program"),
}
"""Rules about bash's own syntax where /bin/sh is dash, as in images of Debian and Ubuntu."""

DOCKER_RULES: Mapping[str, tuple[Severity, str]] = {
    "DL3021": (_W, "COPY of several files to a name without a slash: the classic builder refuses it"),
    "DL3022": (_W, "COPY --from of a stage that is not there: the builder looks for an image of that name"),
    "DL3023": (_E, "COPY --from of the stage itself: the builder refuses it"),
    "DL3024": (_W, "two stages of one name: which of them is meant depends on the builder"),
    "DL3043": (_E, "ONBUILD, FROM or MAINTAINER behind ONBUILD: the builder refuses it"),
    "DL3044": (_W, "ENV refers to a name that the same instruction sets: it gets the value of before"),
    "DL4003": (_I, "several CMD: only the last counts"),
    "DL4004": (_I, "several ENTRYPOINT: only the last counts"),
}
"""Rules of hadolint about instructions; its rules about what RUN runs are not asked, see ``_without_runs``."""

_BASH = re.compile(r"#!.*bash")
_SHELL_SIGNS = re.compile(
    r"\[|(?<![\w.-])test[ \t]|\$\{?\?|(?<![\w-])(?:exec|case|break|continue|exit)(?![\w-])|\$[^\s=$]*=|\s=|shellcheck"
)
"""What a script holds of which a rule of ``SHELL_RULES`` speaks, but for redirects: tests, ``$?``, words, ``$NAME=``,
`` =``; or a directive that makes it another shell's.
"""
_SH_SIGNS = re.compile(r"[<>]\(|<<<|&>|=\(|\bset\b|\bsource\b")
"""The same for ``SH_RULES``, but for tests."""
_LINE_GOES_ON = re.compile(r"\|[ \t]*(?:#[^\n]*)?\n")
_END_OF_SEVERAL = re.compile(r"\s*(?:[})]|(?:done|fi|esac)\b)")
"""Behind it stand redirects of all commands above."""
_DASH = re.compile(
    r"(?:[\w.-]+/)*(?:debian|ubuntu|python|node|golang|ruby|rust|gcc|php|perl|buildpack-deps)(?::(?!.*alpine).*)?(?:@.*)?"
)


@dataclass(frozen=True, slots=True)
class Text:
    """A text for a linter, and where its lines stand."""

    path: str
    text: str
    rows: Sequence[int]
    """Where each line of the text stands in the file."""
    worst: Severity


def shell_texts(context: CheckContext) -> Iterator[Text]:
    """Yield the scripts that a trial starts, and each RUN as a script, if a rule may speak of them."""
    return (text for text in _scripts(context) if _concerns_rules(text.text))


def _concerns_rules(text: str) -> bool:
    """Whether a script holds what one of the rules is about: shellcheck takes longer than all other checks together."""
    by_dash = not _BASH.match(text) and _SH_SIGNS.search(text) is not None
    return by_dash or _SHELL_SIGNS.search(text) is not None or text.count(">") > 1 or _redirects_a_pipe(text)


def _redirects_a_pipe(text: str) -> bool:
    """Whether a command behind a pipe may get its input from somewhere else as well."""
    lines = _LINE_GOES_ON.sub("| ", text.replace("||", "&&").replace("\\\n", " ")).split("\n")
    return "|" in text and any(
        "<" in line and (_END_OF_SEVERAL.match(line) or 0 <= line.find("|") < line.rfind("<")) for line in lines
    )


def _scripts(context: CheckContext) -> Iterator[Text]:
    for script in context.scripts():
        source = context.source(script.path)
        if source is None or len(source.raw) > MAX_TEXT or source.is_binary or not is_shell(source):
            continue
        text = source.text.replace("\r\n", "\n")
        lines = range(1, text.count("\n") + 2)
        if source.shebang:
            yield Text(script.path, text, lines, Severity.ERROR)
        else:
            yield Text(script.path, f"#!/bin/bash\n{text}", [1, *lines], Severity.ERROR)
    for image in images(context):
        yield from _runs(image)


def _runs(image: Image) -> Iterator[Text]:
    """Yield what the RUN instructions run, each in a subshell: one text costs much less than many."""
    for shell in ("dash", "bash"):
        lines, rows = [f"#!/bin/{shell}"], [1]
        for stage, instruction in image.instructions:
            run = image.runs.get(instruction.line)
            if run is not None and run.body is not None and run.text and _is_dash(image, stage) == (shell == "dash"):
                text = run.text.split("\n")
                lines += ["(", *text, ")"]
                rows += [run.first_line, *range(run.first_line, run.first_line + len(text)), instruction.end_line]
        script = "\n".join([*lines, ""])
        if len(lines) > 1 and len(script) <= MAX_TEXT:
            yield Text(image.path, script, rows, image.definition.worst)


def _is_dash(image: Image, stage: int) -> bool:
    """Whether RUN instructions of a stage are run by dash, as far as the base tells."""
    while True:
        if any(instruction.kind == "SHELL" for instruction in image.stages[stage]):
            return False
        below = image.parent(stage)
        if below is None:
            return _DASH.fullmatch(image.base(stage)) is not None
        stage = below


def docker_texts(context: CheckContext) -> Iterator[Text]:
    """Yield each Dockerfile that parses, without its RUN instructions, if a rule may speak of it."""
    for image in images(context):
        source = context.source(image.path)
        if source is not None and len(source.raw) <= MAX_TEXT:
            instructions = [instruction for _, instruction in image.instructions]
            if not _concerns_docker_rules(instructions):
                continue
            text = _without_runs(source.text.split("\n"), instructions)
            yield Text(image.path, text, range(1, text.count("\n") + 2), image.definition.worst)


def _concerns_docker_rules(instructions: Sequence[Instruction]) -> bool:
    """Whether a Dockerfile holds what one of the rules is about."""
    kinds = Counter(instruction.kind for instruction in instructions)
    names = [one.args[2].lower() for one in instructions if one.kind == "FROM" and len(one.args) == 3]
    return (
        kinds["CMD"] > 1
        or kinds["ENTRYPOINT"] > 1
        or kinds["ONBUILD"] > 0
        or len(set(names)) < len(names)
        or any(one.kind == "ENV" and "$" in one.original for one in instructions)
        or any(one.kind == "COPY" and (len(one.args) > 2 or "--from" in one.original) for one in instructions)
    )


def _without_runs(lines: Sequence[str], instructions: Sequence[Instruction]) -> str:
    """Return a Dockerfile of as many lines without RUN.

    hadolint hands each RUN to a shellcheck of its own, which takes twenty times as long as all its other rules.
    """
    kept = list(lines)
    for instruction in instructions:
        if instruction.kind == "RUN":
            kept[instruction.line - 1 : instruction.end_line] = [""] * (instruction.end_line - instruction.line + 1)
    return "\n".join(kept)


def lint_checks(shell: Linter | None = None, docker: Linter | None = None) -> dict[str, Check]:
    """Return the checks by id that ask the linters, for whoever wants them; ``run_checks`` takes them like others.

    Raises nothing; the checks raise Conclusion ``missing-tool`` where a linter is not installed.
    """
    shell = shell or shellcheck([*SHELL_RULES, *SH_RULES])
    docker = docker or hadolint()
    return {
        "lint-shell": Check(
            "lint-shell",
            Severity.WARNING,
            "lint",
            "shellcheck: the script does other than what it seems to say.",
            "see https://www.shellcheck.net/wiki/ and the code",
            lambda context: _places(shell, list(shell_texts(context)), {**SHELL_RULES, **SH_RULES}),
        ),
        "lint-dockerfile": Check(
            "lint-dockerfile",
            Severity.WARNING,
            "lint",
            "hadolint: an instruction does other than what it seems to say.",
            "see https://github.com/hadolint/hadolint/wiki/ and the code",
            lambda context: _places(docker, list(docker_texts(context)), DOCKER_RULES),
        ),
    }


def _places(linter: Linter, texts: Sequence[Text], rules: Mapping[str, tuple[Severity, str]]) -> Iterator[Place]:
    for text, remarks in zip(texts, linter.remarks([one.text for one in texts]), strict=True):
        if remarks is None:
            yield Place(text.path, f"{linter.name} gave no answer in time", severity=Severity.INFO)
            continue
        for remark in remarks:
            rule = rules.get(remark.code)
            if rule is not None:
                severity = text.worst if rule[0] is Severity.ERROR else rule[0]
                line = text.rows[min(max(remark.line, 1), len(text.rows)) - 1]
                yield Place(text.path, f"{remark.code}: {rule[1]}", line, severity)
