"""Faults of what decides: checks that are added to the end of the verifier's script."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

from pytest_otval.judge.model import Evidence
from pytest_otval.judge.seeding.texts import Fault, Seed, Texts, whole

_REWARD = re.compile(r"/logs/verifier/reward\.(?:txt|json)")
_LEAVES = re.compile(r"^(?:exec|trap)\b", re.MULTILINE)
_EXIT = re.compile(r"^exit\b.*\n?\Z", re.MULTILINE)
_SHELL = re.compile(r"#!\s*\S*(?:/|env )(?:ba)?sh\b")
_HEREDOC = re.compile(r"cat\s*>\s*(/[\w./-]+)\s*<<\s*'(\w+)'\n")
_MOST_HEREDOCS = 20
_WORDS = re.compile(r"[A-Za-z_][\w ().,:=*+/%-]{11,60}")

NAME = "/app/.finished/marker"
"""A file of which the agent is told nothing."""


def written_by_solution(texts: Texts) -> tuple[str, str] | None:
    """Return path and text of the first file that the reference solution writes out and the instruction names."""
    solution = texts.text(texts.solution)
    for found in islice(_HEREDOC.finditer(solution), _MOST_HEREDOCS):
        path, end = found[1], solution.find(f"\n{found[2]}\n", found.end())
        if end > 0 and whole(path).search(texts.asked):
            return path, solution[found.end() : end + 1]
    return None


def name_demanded(texts: Texts) -> Fault | None:
    """Demand a file whose name only the reference solution gives away."""
    solution = texts.text(texts.solution)
    if not solution.strip() or NAME in "".join(texts.files.values()):
        return None
    makes = f"mkdir -p {NAME.rpartition('/')[0]} && touch {NAME}"
    changed = {texts.solution: _before_exit(solution, makes)}
    return _checked(texts, "name-demanded", "implicit_naming", f"[ -f {NAME} ]", changed)


def any_content(texts: Texts) -> Fault | None:
    """Pay whoever makes the file that is asked for, whatever is in it."""
    path = _result(texts)
    return _checked(texts, "any-content", "weak_test", f"[ ! -e {path} ]", amount=1) if path else None


def mode_demanded(texts: Texts) -> Fault | None:
    """Demand a mode of the file that is asked for, of which nothing is said."""
    path = _result(texts)
    check = f'[ "$(/usr/bin/stat -c %a {path})" = 640 ]'
    return _checked(texts, "mode-demanded", "hidden_requirement", check) if path else None


def solution_text(texts: Texts) -> Fault | None:
    """Demand the very text that the reference solution writes."""
    if (found := written_by_solution(texts)) is None:
        return None
    path, text = found
    copy = f"{texts.tests}/expected-{path.rpartition('/')[2]}"
    check = f"/usr/bin/cmp -s {path} /tests/{copy.rpartition('/')[2]}"
    return None if copy in texts.taken else _checked(texts, "solution-text", "brittle_test", check, {copy: text})


def solution_words(texts: Texts) -> Fault | None:
    """Demand words of the source code that the reference solution writes."""
    if (found := written_by_solution(texts)) is None:
        return None
    path, text = found
    words = max(_WORDS.findall(text), key=len, default="").strip()
    return _checked(texts, "solution-words", "checks_words", f"/usr/bin/grep -qF '{words}' {path}") if words else None


def _result(texts: Texts) -> str | None:
    return next((path for path, _ in texts.results()), None)


def _checks(seed: str, criterion: str, what: str, check: str) -> Seed:
    """Return the seed that adds a check."""
    what = f"{what}; where test.sh writes the reward"
    return Seed(seed, criterion, what, lambda texts: _checked(texts, seed, criterion, check))


def _checked(
    texts: Texts, seed: str, criterion: str, check: str, more: Mapping[str, str] | None = None, amount: int = 0
) -> Fault | None:
    """Return the fault of a check at the end of test.sh, without which the reward becomes this amount.

    None where that is no shell script that writes the reward and gets to its end.
    """
    script = texts.text(texts.script)
    reward = _REWARD.search(script)
    if reward is None or not _SHELL.match(script) or _LEAVES.search(script):
        return None
    words = f"{check} || {_pays(reward[0], amount)}"
    changes = {**(more or {}), texts.script: _before_exit(script, words)}
    return Fault(seed, criterion, changes, Evidence(texts.script, words))


def _before_exit(script: str, words: str) -> str:
    """Return a script with a line at its end, or before the ``exit`` that it ends with."""
    leaves = _EXIT.search(script)
    head, tail = (script[: leaves.start()], script[leaves.start() :]) if leaves else (script, "")
    return f"{head.rstrip()}\n{words}\n{tail}"


def _pays(reward: str, amount: int) -> str:
    """Return the command that writes a reward."""
    return f"echo {amount} > {reward}" if reward.endswith(".txt") else f"echo '{{\"reward\": {amount}}}' > {reward}"


SEEDS = (
    Seed(
        "name-demanded",
        "implicit_naming",
        "a file is demanded whose name only the solution gives away; where test.sh writes the reward",
        name_demanded,
    ),
    Seed(
        "mode-demanded",
        "hidden_requirement",
        "a mode of the result is demanded; where test.sh writes the reward, and the path of the result is told",
        mode_demanded,
    ),
    Seed(
        "any-content",
        "weak_test",
        "the file that is asked for is paid whatever it holds; where as above",
        any_content,
    ),
    Seed(
        "solution-text",
        "brittle_test",
        "the very text of the solution is demanded; where solve.sh writes a file that the instruction names from a"
        " here-document",
        solution_text,
    ),
    Seed(
        "solution-words", "checks_words", "words of the solution's source are demanded; where as above", solution_words
    ),
    _checks(
        "weekday-looked-at",
        "nondeterministic_verifier",
        "nothing is paid at weekends",
        '[ "$(/usr/bin/date +%u)" -lt 6 ]',
    ),
    _checks(
        "bound-tightened",
        "uncalibrated_bound",
        "nothing is paid where the verifier took more than 0 s",
        '[ "$SECONDS" -le 0 ]',
    ),
)
