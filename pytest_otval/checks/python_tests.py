"""Python tests: can they run, can they fail, and do they say the same everywhere."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator
from itertools import islice

from pytest_otval.checks import python_asserts, python_flaky, python_marks
from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.python_ast import TestCase, parse_python, test_cases
from pytest_otval.checks.python_files import (
    TestFile,
    conftests,
    declared_python,
    installing,
    parsed_files,
    pytest_settings,
    test_files,
)
from pytest_otval.checks.python_fixtures import missing_fixtures, plugin_fixtures
from pytest_otval.checks.python_ids import cut_ids
from pytest_otval.checks.python_versions import absent_modules, unreadable
from pytest_otval.checks.registry import Place, check
from pytest_otval.checks.vacuous import test_functions
from pytest_otval.core import Severity

_LISTS = (".json", ".txt", ".list", ".lst", ".yaml", ".yml", ".sh")
_MAX_LIST = 512 * 1024
"""Bytes of a list that are looked at."""
_TOLD = 20
"""Findings of one check in one file; who wrote more of a kind knows by then."""
_SHORT_SECONDS = 5.0
"""A limit below this is met or missed by how busy the machine is."""


def _useful(file: TestFile, found: Iterator[tuple[TestCase, Place]]) -> Iterator[Place]:
    """Yield what is found in tests but those that ``vacuous-tests`` and ``vacuous-skipped`` speak of."""
    places = list(islice(found, _TOLD))
    useless = {one.line for one in test_functions(file.source.text) or () if one.empty or one.skipped} if places else {}
    return (place for case, place in places if case.function.lineno not in useless)


@check(
    "python-version",
    severity=Severity.ERROR,
    family="python_tests",
    explains="A test file that the image's Python cannot read or import fails whatever the agent did.",
    fix="write it for the image's Python, or take a base image with another one",
)
def version(context: CheckContext) -> Iterator[Place]:
    """Look for syntax and standard modules that the Python of the base image does not have."""
    for file in test_files(context):
        python = declared_python(context, file.step)
        if python is None:
            continue
        shown = f"Python {python[0]}.{python[1]} of the base image"
        bad = unreadable(file.source.text, python)
        if bad is not None:
            yield Place(file.path, f"{shown} cannot read it: {bad[1]}", bad[0])
        elif file.module is not None:
            for line, name in absent_modules(file.module, python):
                yield Place(file.path, f"{shown} has no module {name}", line)


@check(
    "python-fixture",
    severity=Severity.WARNING,
    family="python_tests",
    explains="A test that asks for a fixture nobody defines ends in an error whatever the agent did.",
    fix="define the fixture in the file or in a conftest.py beside it, or correct its name",
)
def fixture(context: CheckContext) -> Iterator[Place]:
    """Look for fixtures that neither the file, nor a conftest.py, nor a plugin that is installed defines."""
    for file, module in parsed_files(context):
        plugins = plugin_fixtures(tuple(source.text for source in installing(context, file)))
        above = [parse_python(source.text) for source in conftests(context, file)]
        config = context.task.config
        if plugins is None or None in above or config is None or config.environment.docker_image:
            continue
        known = [one for one in above if one is not None]
        for line, test, name in islice(missing_fixtures(module, known, plugins), _TOLD):
            yield Place(file.path, f"{test} asks for the fixture {name}, which nothing defines", line)


@check(
    "python-no-assertion",
    severity=Severity.WARNING,
    family="python_tests",
    explains="A test that asserts nothing passes as long as nothing raises, whatever came out.",
    fix="assert what the instruction asks for",
)
def no_assertion(context: CheckContext) -> Iterator[Place]:
    """Look for tests that do something and assert nothing, helpers and raising calls included."""
    for file, module in parsed_files(context):
        siblings = {posixpath.basename(entry.path) for entry in context.tree.under(file.folder)}
        names = frozenset(name.removesuffix(".py") for name in siblings)
        asserts = python_asserts.Asserts(module, names)
        idle = (case for case in test_cases(module) if not asserts.can_fail(case.function))
        yield from _useful(file, ((case, _idle(file, case)) for case in idle))


def _idle(file: TestFile, case: TestCase) -> Place:
    returned = python_asserts.returns_comparison(case.function)
    why = "returns its answer instead of asserting it" if returned else "asserts nothing"
    return Place(file.path, f"{case.name} {why}", case.function.lineno)


@check(
    "python-always-true",
    severity=Severity.WARNING,
    family="python_tests",
    explains="An assertion that is true whatever happens checks nothing, though it reads as if it did.",
    fix="assert the condition alone",
)
def always_true(context: CheckContext) -> Iterator[Place]:
    """Look for asserts of tuples, of texts, of `... or True`; an error where something else was surely meant."""
    for file, module in parsed_files(context):
        for line, why, surely in islice(python_asserts.always_true(module), _TOLD):
            yield Place(file.path, why, line, Severity.ERROR if surely else Severity.WARNING)


@check(
    "python-swallowed",
    severity=Severity.WARNING,
    family="python_tests",
    explains="The AssertionError ends in the `except` around it, so the test passes whatever came out.",
    fix="catch the one exception that is expected, outside the assertion",
)
def swallowed(context: CheckContext) -> Iterator[Place]:
    """Look for assertions inside a try whose handler hides their failure."""
    for file, module in parsed_files(context):
        if "except" in file.source.text:
            hidden = ((case, line) for case in test_cases(module) for line in python_asserts.swallowed(case))
            message = "hides the failure of this assertion"
            yield from _useful(
                file, ((case, Place(file.path, f"{case.name} {message}", line)) for case, line in hidden)
            )


@check(
    "python-existence-only",
    severity=Severity.WARNING,
    family="python_tests",
    explains="A test that only asks whether a file is there is met by an empty file.",
    fix="assert what is in the file",
)
def existence_only(context: CheckContext) -> Iterator[Place]:
    """Look for verifiers all of whose tests ask for nothing but files that exist."""
    by_step: dict[str, list[tuple[TestFile, list[TestCase]]]] = {}
    for file, module in parsed_files(context):
        by_step.setdefault(file.step.name, []).append((file, list(test_cases(module))))
    for files in by_step.values():
        cases = [case for _, found in files for case in found]
        if cases and all(python_asserts.existence_only(case.function) for case in cases):
            for file, found in files:
                yield from (
                    Place(
                        file.path,
                        f"{case.name}, like all tests here, asks only whether files exist",
                        case.function.lineno,
                    )
                    for case in found[:1]
                )


@check(
    "python-xfail",
    severity=Severity.WARNING,
    family="python_tests",
    explains="A test that is expected to fail passes when it fails and when it does not.",
    fix="remove the mark, or add strict=True",
)
def xfail(context: CheckContext) -> Iterator[Place]:
    """Look for xfail marks that are not strict."""
    for file, module in parsed_files(context):
        marked = "xfail" in file.source.text
        if marked and not any("xfail_strict" in source.text for source in pytest_settings(context, file)):
            for line, name in islice(python_marks.xfails(module), _TOLD):
                yield Place(file.path, f"{name} passes whether it fails or not", line)


@check(
    "python-skip",
    severity=Severity.WARNING,
    family="python_tests",
    explains="pytest ends with status 0 where tests are skipped, so missing work can pass for right work.",
    fix="fail instead of skipping, or let test.sh count the tests that passed",
)
def skip(context: CheckContext) -> Iterator[Place]:
    """Look for tests that skip themselves by what they find; not where the test script looks at skips."""
    for file, module in parsed_files(context):
        script = context.source(context.test_script(file.step))
        if "skip" in file.source.text.lower() and (script is None or "skip" not in script.text):
            for line, why in islice(python_marks.skips(module), _TOLD):
                yield Place(file.path, why, line)


@check(
    "python-empty-parametrize",
    severity=Severity.ERROR,
    family="python_tests",
    explains="pytest skips a test that is parametrized over nothing, so it never judges anything.",
    fix="give it parameters, or remove the mark",
)
def empty_parametrize(context: CheckContext) -> Iterator[Place]:
    """Look for tests that are parametrized over an empty list."""
    for file, module in parsed_files(context):
        if "parametrize" in file.source.text:
            for line, name in islice(python_marks.empty_parameters(module), _TOLD):
                yield Place(file.path, f"{name} is parametrized over nothing", line)


@check(
    "python-cut-id",
    severity=Severity.WARNING,
    family="python_tests",
    explains="pytest's ids of parametrized tests end with a bracket: one that was cut at a blank is of no test.",
    fix="write the whole id, as `pytest --collect-only -q` prints it",
)
def cut_id(context: CheckContext) -> Iterator[Place]:
    """Look for ids of parametrized tests that lack their end, in lists below tests/."""
    for entry in context.test_files:
        if not entry.path.endswith(_LISTS) or entry.size > _MAX_LIST:
            continue
        source = context.source(entry.path)
        found = list(cut_ids(entry.path, source.text)) if source is not None and b"::" in source.raw else []
        if found:
            line, value = found[0]
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            yield Place(entry.path, f"{value[:120]} is cut{more}", line)


@check(
    "python-clock",
    severity=Severity.WARNING,
    family="python_tests",
    explains="How long something takes, and what day it is, differ from one machine and run to the next.",
    fix="compare with what the test itself measures or reads, or leave a wide margin",
)
def clock(context: CheckContext) -> Iterator[Place]:
    """Look for assertions about elapsed time, a warning where the limit is short, and about today's date."""
    for file, module in parsed_files(context):
        timed = python_flaky.MEASURES.search(file.source.text) is not None
        for line, limit in islice(python_flaky.time_limits(module), _TOLD) if timed else ():
            severity = Severity.WARNING if limit < _SHORT_SECONDS else Severity.INFO
            yield Place(file.path, f"asserts that something takes less than {limit:g} s", line, severity)
        for line in _fixed(file, module, "date"):
            yield Place(file.path, "compares the current time with a constant", line)


def _fixed(file: TestFile, module: ast.Module, kind: python_flaky.Kind) -> Iterator[int]:
    if python_flaky.MENTIONS[kind].search(file.source.text):
        yield from islice(python_flaky.fixed(module, kind), _TOLD)


@check(
    "python-machine",
    severity=Severity.WARNING,
    family="python_tests",
    explains="Host names and user ids are the sandbox's: the same work passes on one machine and fails on the next.",
    fix="ask for what the instruction asks for, not for the name or user of this machine",
)
def machine(context: CheckContext) -> Iterator[Place]:
    """Look for assertions that compare the host name or the user with a constant."""
    for file, module in parsed_files(context):
        for line in _fixed(file, module, "host"):
            yield Place(file.path, "compares the host name or the user with a constant", line)


@check(
    "python-random",
    severity=Severity.INFO,
    family="python_tests",
    explains="A failure that depends on random numbers nobody can draw again cannot be looked into.",
    fix="seed the generator, and print the seed",
)
def unseeded(context: CheckContext) -> Iterator[Place]:
    """Look for test files that use a random generator and never seed one."""
    for file, module in parsed_files(context):
        line = python_flaky.unseeded(module) if "random." in file.source.text else None
        if line is not None:
            yield Place(file.path, "draws random numbers without a seed", line)
