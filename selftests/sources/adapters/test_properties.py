"""Whatever a source holds, an adapter gives tasks without faults of its own making, or refuses in one line."""

import json
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_otval.checks.registry import run_checks
from pytest_otval.core import NAME, Severity
from pytest_otval.sources.adapters.base import Converted
from pytest_otval.sources.adapters.registry import make_adapter
from pytest_otval.sources.files import publish_folder
from pytest_otval.sources.raw import ConvertedTask
from pytest_otval.task.digest import task_digest
from pytest_otval.task.load import load_task
from pytest_otval.task.pack import pack, unpack_dataset
from pytest_otval.task.packed.forms import Form
from selftests.sources.adapters.samples import (
    HARBOR,
    bug,
    diff,
    old_task,
    packed,
    row,
    scale_row,
    write_folder,
    write_jsonl,
    write_parquet,
)

SEARCH = settings(max_examples=60, suppress_health_check=list(HealthCheck))

LINE = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=40)
CODE = st.lists(LINE, min_size=1, max_size=8).map(lambda lines: "".join(f"{line}\n" for line in lines))
PART = st.text(string.ascii_letters + string.digits + "._- [*]+@'é", min_size=1, max_size=12)
PATH = st.lists(PART, min_size=1, max_size=3).map("/".join)
NODE = st.builds(
    "tests/test_{}.py::test_{}".format,
    st.sampled_from("abc"),
    st.from_regex(r"[a-z]{1,8}(\[[a-z -]*\])?", fullmatch=True),
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NASTY = st.sampled_from(
    ["../../etc/passwd", "/etc/passwd", "a\0b", "\x1b[2J", "a\nRUN evil", "\ud800", "$(id)", "'; id; '", "-x"]
)


def checked(folder, outcomes):
    """Require of each outcome what holds for all, and return the tasks."""
    tasks = []
    for outcome in outcomes:
        if not isinstance(outcome, Converted):
            assert outcome.name.isprintable() and outcome.why and outcome.why.isprintable()
            continue
        assert NAME.fullmatch(outcome.name) and outcome.name[0] != "."
        publish_folder(outcome.files, folder / "set/tasks" / outcome.name)
        tasks.append(outcome)
    return tasks


def errors(folder, task):
    loaded = load_task(folder / "set/tasks" / task.name, "set")
    assert loaded.config is not None
    return [str(one) for one in run_checks(loaded) if one.severity is Severity.ERROR]


@pytest.fixture
def fresh(tmp_path):
    number = iter(range(10**6))
    return lambda: tmp_path / str(next(number))


@SEARCH
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "instance_id": PART,
            "problem_statement": CODE.filter(str.strip),
            "patch": st.builds(diff, PATH, st.just(""), CODE),
            "FAIL_TO_PASS": st.lists(NODE, min_size=1, max_size=4).map(json.dumps),
            "PASS_TO_PASS": st.lists(NODE, max_size=4),
        },
    )
)
def test_rows_of_all_kinds_become_tasks_without_errors(fresh, changes):
    folder = fresh()
    folder.mkdir()
    for task in checked(folder, make_adapter("swe").convert(write_jsonl(folder / "rows.jsonl", [row(**changes)]))):
        # What the statement itself says is the source's.
        assert errors(folder, task) == []


@SEARCH
@given(st.dictionaries(st.sampled_from(sorted(row())), JUNK | NASTY, min_size=1, max_size=4))
def test_rows_of_any_content_end_in_a_task_or_a_line(fresh, changes):
    folder = fresh()
    folder.mkdir()
    source = write_jsonl(folder / "rows.jsonl", [{**row(), **changes}, row(instance_id="good")])
    assert [task.name for task in checked(folder, make_adapter("swe").convert(source))][-1:] == ["good"]


@SEARCH
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "f2p_script": CODE.filter(str.strip),
            "pre_commands": CODE.filter(str.strip),
            "patch": st.builds(diff, PATH, st.just(""), CODE),
            "f2p_patch": st.builds(diff, PATH, st.just(""), CODE),
        },
    ),
    st.dictionaries(st.sampled_from(sorted(scale_row())), JUNK | NASTY, max_size=1),
)
def test_rows_of_scale_swe_become_tasks_without_errors(fresh, changes, wrong):
    folder = fresh()
    folder.mkdir()
    rows = [{**scale_row(**changes), **wrong}, scale_row(instance_id="good")]
    tasks = checked(folder, make_adapter("swe").convert(write_jsonl(folder / "rows.jsonl", rows)))
    assert [task.name for task in tasks][-1:] == ["good"]
    for task in tasks:
        # What commands and statement say is the source's.
        assert [
            one for one in errors(folder, task) if not one.startswith(("instruction.md", "environment/first.sh"))
        ] == []


@SEARCH
@given(
    st.dictionaries(
        st.sampled_from(["bug.info", "run_test.sh", "bug_patch.txt", "setup.sh"]), st.binary(max_size=80) | CODE
    )
)
def test_bugs_of_any_content(fresh, changes):
    folder = fresh()
    for task in checked(folder, make_adapter("bugsinpy").convert(write_folder(folder, bug(**changes)))):
        assert errors(folder, task) == []


@SEARCH
@given(
    st.dictionaries(
        st.sampled_from(
            ["task.yaml", "docker-compose.yaml", "run-tests.sh", "solution.sh", "Dockerfile", "tests/a.py"]
        ),
        st.binary(max_size=80) | CODE | JUNK.map(json.dumps),
        max_size=2,
    )
)
def test_old_tasks_of_any_content(fresh, changes):
    folder = fresh()
    outcomes = make_adapter("terminal-bench").convert(write_folder(folder / "source", old_task(**changes)))
    own = ("tests/test.sh", "task.toml")
    for task in checked(folder, outcomes):
        assert [error for error in errors(folder, task) if error.startswith(own)] == []


@SEARCH
@given(st.dictionaries(PATH | NASTY, st.binary(max_size=20), max_size=4), st.integers(0, 4000), st.binary(max_size=4))
def test_packed_tasks_of_any_content(fresh, files, place, damage):
    folder = fresh()
    folder.mkdir()
    try:
        task = bytearray(packed({**HARBOR, **files}))
    except ValueError:
        return
    task[place : place + len(damage)] = damage
    rows = [{"path": "one", "task_binary": bytes(task)}, {"path": "good", "task_binary": packed()}]
    source = write_parquet(folder / "tasks.parquet", rows)
    assert [one.name for one in checked(folder, make_adapter("harbor-parquet").convert(source))][-1:] == ["good"]


def test_tasks_of_all_adapters_are_packed_and_unpacked_unchanged(tmp_path):
    sources = {
        "swe": write_jsonl(tmp_path / "rows.jsonl", [row()]),
        "bugsinpy": write_folder(tmp_path / "bugs", bug()),
        "terminal-bench": write_folder(tmp_path / "old", {f"sum/{k}": v for k, v in old_task().items()}).resolve(),
        "harbor-parquet": write_parquet(tmp_path / "h.parquet", [{"path": "passed", "task_binary": packed()}]),
    }
    tasks = [task for name, at in sources.items() for task in checked(tmp_path, make_adapter(name).convert(at))]
    assert len(tasks) == 4
    for form in Form:
        out = tmp_path / f"packed-{form}"
        pack(tmp_path / "set", form, out)
        assert unpack_dataset(out, tmp_path / f"again-{form}") == (4, [])
        for task in tasks:
            folder = tmp_path / f"again-{form}" / "tasks" / task.name
            assert task_digest(folder) == ConvertedTask(task).digest(tmp_path)
            for path, file in task.files.items():
                place = tmp_path / f"again-{form}/tasks" / task.name / path
                assert place.read_bytes() == file.content
                assert bool(place.stat().st_mode & 0o100) == file.executable
