"""Items: one stage of one task. An item asks, and tells pytest the answer.

The question is asked in the set-up phase: what is our or the machine's fault is raised there and is an *error* to
pytest and to everything that reads its reports; what is the task's fault is raised in the call phase and is a failure.
"""

from __future__ import annotations

import os
from functools import cache, cached_property
from typing import Any

import pytest

from pytest_otval.core import StageResult, Verdict, stage_of
from pytest_otval.glue import extensions
from pytest_otval.glue.engine import Engine
from pytest_otval.glue.lines import for_reports
from pytest_otval.glue.plan import ENGINE, OUT
from pytest_otval.glue.recording import Asked
from pytest_otval.ledger import Line
from pytest_otval.task.dataset import KnownBad

PROPERTY = "otval"
"""Name of the one user property with the answer: it survives xdist and lands in junit and html."""


class StageFailure(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """The answer of a stage was not the expected one."""


class StageError(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """There is no answer, by our or the machine's fault."""


# pytest shows the name of a failure's class with its module.
StageFailure.__module__ = StageError.__module__ = "builtins"


class _Item(pytest.Item):
    result: StageResult | None = None
    text: str = ""
    """What a person needs to know of an answer that is not the expected one."""

    @property
    def ihook(self) -> Any:
        return self.session.config.hook

    @cached_property
    def location(self) -> tuple[str, int | None, str]:
        """What pytest says, which looks at the parts of both paths to make one relative to the other."""
        path, line, name = self.reportinfo()
        below, root = os.fspath(path), f"{self.config.rootpath}/"
        return (below.removeprefix(root), line, name) if below.startswith(root) else super().location

    def ask(self, engine: Engine) -> tuple[StageResult, Line]:
        """Return the stage's answer."""
        raise NotImplementedError

    def setup(self) -> None:
        """Ask the stage."""
        result, line = self.ask(self.config.stash[ENGINE])
        self.result = result
        self.user_properties.append((PROPERTY, for_reports(line)))
        if result.verdict in (Verdict.ERROR, Verdict.FAIL):
            from pytest_otval.report.failure import failure_text

            self.text = failure_text(line.as_dict(), self.config.stash[OUT])
        if result.verdict is Verdict.ERROR:
            raise StageError(self.text, pytrace=False)
        if result.verdict in (Verdict.NA, Verdict.BLOCKED):
            # No text of one task in the reason: pytest folds equal reasons.
            pytest.skip(f"{result.verdict}: {result.reason}")

    def runtest(self) -> None:
        """Tell the answer."""
        assert self.result is not None
        if self.result.verdict is Verdict.FAIL:
            raise StageFailure(self.text, pytrace=False)


@cache
def _mark(name: str) -> pytest.MarkDecorator:
    """Return one mark for all items of a stage: making it costs as much as the item."""
    mark: pytest.MarkDecorator = getattr(pytest.mark, name)
    return mark


class StageItem(_Item):
    """A stage of a task.

    Where dataset.toml records the task as bad at this stage, a failure is expected and a pass is not (strict xfail);
    errors stay errors. Where it is recorded as bad at build, what that blocks is expected too. Where a contract says
    that the question does not apply, a pass is not expected either.
    """

    def __init__(self, *, known_bad: KnownBad | None, inapplicable: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.inapplicable = inapplicable
        for mark in extensions.stages(self.config)[self.name].marks:
            self.add_marker(_mark(mark))
        self.known_bad = known_bad
        if known_bad is not None and stage_of(self.name) in known_bad.stages:
            self.add_marker(pytest.mark.xfail(reason=str(known_bad), strict=True, raises=StageFailure))

    def setup(self) -> None:
        """Ask the stage."""
        try:
            super().setup()
        except pytest.skip.Exception:
            assert self.result is not None
            blocked = self.result.verdict is Verdict.BLOCKED
            if blocked and self.known_bad is not None and self.known_bad.expects(stage_of(self.name), Verdict.BLOCKED):
                pytest.xfail(str(self.known_bad))
            raise

    def runtest(self) -> None:
        """Tell the answer."""
        super().runtest()
        if self.inapplicable:
            # No StageFailure: that is what an item that is known to be bad is expected to raise.
            pytest.fail(f"unexpected pass: the contract says n/a {self.inapplicable}", pytrace=False)

    def ask(self, engine: Engine) -> tuple[StageResult, Line]:
        """Ask about the task."""
        return engine.ask(self.asked)

    def recall(self) -> bool:
        """Take an answer that is remembered and a pass; whether there is one."""
        line = None if self.known_bad is not None or self.inapplicable else self.config.stash[ENGINE].recall(self.asked)
        if line is not None:
            self.user_properties.append((PROPERTY, for_reports(line)))
        return line is not None

    @property
    def asked(self) -> Asked:
        """What it asks about."""
        node: Any = self.parent
        chosen = node.parent
        return Asked(
            self.nodeid,
            self.name,
            chosen.dataset,
            chosen.source,
            node.name,
            self.known_bad,
            self.inapplicable,
            "" if chosen.pin is None else f"sha256:{chosen.pin.tasks[node.name].digest}",
        )

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Name the task and the stage; pytest needs a line to tell where a skip mark stands."""
        assert self.parent is not None
        return self.path, 0, f"{self.parent.name} · {self.name}"


class DatasetItem(_Item):
    """The static stage of a dataset: its dataset.toml."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_marker(self.name)

    def ask(self, engine: Engine) -> tuple[StageResult, Line]:
        """Tell what was found in dataset.toml."""
        node: Any = self.parent
        return engine.ask_dataset(Asked(self.nodeid, self.name, node.dataset, node.source, ""))

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Name the dataset."""
        assert self.parent is not None
        return self.path, 0, f"{self.parent.name} · dataset.toml"
