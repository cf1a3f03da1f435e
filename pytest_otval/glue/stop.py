"""When a run starts no more items: too many of them ended badly, or the machine is at fault again and again.

The controller decides from the reports it sees. Items that run come to their end; the others are passed over in
silence, by workers too, which find the decision in a file of the run folder. So reports are written as ever, and an
item that was not run is in none of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.glue.options import ERRORS_ONLY
from pytest_otval.glue.outcome import answer_of, decides
from pytest_otval.glue.plan import OUT
from pytest_otval.glue.submit_options import runs_elsewhere

STOPPED = "stopped"
"""The file of the run folder that tells workers."""

LEAST_ANSWERS = 20
"""From this many answers on a share of them means something."""

SAME_ERRORS = 20
"""Equal errors of the machine in a row that stop any run."""

RULE = re.compile(r"\s*(infra|fail|blocked|flaky)\s*(>=|>)\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(%?)\s*")
ALLOWED = "infra, fail, blocked or flaky, then > or >=, then a number of items or of % of the answers, as 'infra > 5%'"


@dataclass(frozen=True, slots=True)
class Rule:
    """A share, or a number, of answers of one kind that is too much."""

    text: str
    kind: str
    strict: bool
    """Whether the limit itself is still allowed."""
    limit: float
    percent: bool

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Raises OtvalUsageError."""
        found = RULE.fullmatch(text)
        if found is None:
            raise OtvalUsageError(f"--otval-stop-if {text!r}: write {ALLOWED}")
        kind, sign, limit, percent = found.groups()
        if percent and not 0 < float(limit) <= 100:
            raise OtvalUsageError(f"--otval-stop-if {text!r}: a share of answers is above 0 % and at most 100 %")
        return cls(text.strip(), kind, sign == ">", float(limit), bool(percent))

    def counts(self, answer: Mapping[str, Any]) -> bool:
        """Whether an answer is of this kind. What dataset.toml expects to be bad is no failure."""
        if self.kind == "infra":
            return bool(answer["verdict"] == "error")
        if answer["known_bad"]:
            return False
        return self.kind in (answer["verdict"], answer["class"])

    def is_met(self, count: int, answers: int) -> bool:
        """Whether ``count`` of ``answers`` is too much."""
        if self.percent and answers < LEAST_ANSWERS:
            return False
        value = 100 * count / answers if self.percent else count
        return value > self.limit if self.strict else value >= self.limit


@dataclass(frozen=True, slots=True)
class Decision:
    """Why no more items are to start."""

    why: str
    blames_machine: bool


class Watch:
    """Looks at answers as they come, and says when it is enough."""

    def __init__(self, rule: Rule | None) -> None:
        self._rule = rule
        self._answers = 0
        self._counted: Counter[str] = Counter()
        """By class."""
        self._streak: Counter[str] = Counter()
        """Of the class that the latest errors have in common."""

    def add(self, answer: Mapping[str, Any]) -> Decision | None:
        """Take an answer; None lets the run go on."""
        self._answers += 1
        if answer["class"] == "budget-spent":
            return Decision(answer["headline"], blames_machine=True)
        return self._too_many(answer) or self._same_errors(answer)

    def _too_many(self, answer: Mapping[str, Any]) -> Decision | None:
        rule = self._rule
        if rule is None:
            return None
        if rule.counts(answer):
            self._counted[answer["class"]] += 1
        count = self._counted.total()
        # A share may be too much only now that there are enough answers.
        if count == 0 or not rule.is_met(count, self._answers):
            return None
        classes = ", ".join(f"{name} x {times}" for name, times in self._counted.most_common(3))
        return Decision(f"{rule.text}: {count} of {self._answers} answers ({classes})", rule.kind == "infra")

    def _same_errors(self, answer: Mapping[str, Any]) -> Decision | None:
        reason = answer["class"]
        if answer["verdict"] == "error":
            if reason not in self._streak:
                self._streak.clear()
            self._streak[reason] += 1
            if self._streak[reason] == SAME_ERRORS:
                return Decision(f"{SAME_ERRORS} errors of the machine in a row are {reason}", blames_machine=True)
        elif answer["image_key"]:
            # An answer without a container, as those of static, says nothing about the machine.
            self._streak.clear()
        return None


class PassOver:
    """In each process: starts no item once the run is stopped."""

    def __init__(self) -> None:
        self.stopped = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Take an item out of pytest's hands without a word; one that another process ran is told."""
        if runs_elsewhere(item.config):
            return None
        out = item.config.stash.get(OUT, None)
        self.stopped = self.stopped or (out is not None and (out / STOPPED).exists())
        return True if self.stopped else None


class Stop:
    """On the controller: decides, and tells why."""

    def __init__(self, config: pytest.Config, here: PassOver) -> None:
        """``here`` is this process's. Raises UsageError where ``--otval-stop-if`` is wrong."""
        text = str(config.getoption("--otval-stop-if"))
        try:
            rule = Rule.parse(text) if text else None
        except OtvalUsageError as error:
            raise pytest.UsageError(str(error)) from None
        self._watch = Watch(rule)
        self._config = config
        self._here = here
        self._session: pytest.Session | None = None
        self._started = 0
        self._decision: Decision | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Forget the decision of an earlier run into the same folder."""
        self._session = session
        if OUT in self._config.stash:
            # A folder that cannot be written is refused when run.json is.
            with suppress(OSError):
                (self._config.stash[OUT] / STOPPED).unlink()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take an answer, and stop the run where it is one too many."""
        self._started += report.when == "setup"
        answer = answer_of(report) if decides(report) else None
        if answer is None or self._decision is not None:
            return
        self._decision = self._watch.add(answer)
        if self._decision is not None:
            self._here.stopped = True
            # On a full disk workers do not hear of it; it is no reason to break off.
            with suppress(OSError):
                (self._config.stash[OUT] / STOPPED).write_text(f"{self._decision.why}\n")

    def exit_status(self, status: int) -> int:
        """Return the status of a run that the machine's errors stopped; any other keeps its own."""
        ended = status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
        return ERRORS_ONLY if ended and self._decision is not None and self._decision.blames_machine else status

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say why the run was stopped and how many items were not run."""
        if self._decision is not None and self._session is not None:
            left = self._session.testscollected - self._started
            terminalreporter.write_line(f"stopped: {self._decision.why}; {left} items were not run", red=True)
