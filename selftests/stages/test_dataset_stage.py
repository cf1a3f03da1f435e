"""static of a dataset as a whole, in each form of it."""

from types import SimpleNamespace

import pytest

from pytest_otval.core import Severity
from pytest_otval.settings import VerdictSettings
from pytest_otval.stages import dataset as module
from pytest_otval.stages import survey as surveying
from pytest_otval.stages.dataset import dataset_answer
from pytest_otval.task.dataset import load_dataset
from pytest_otval.task.pack import pack
from pytest_otval.task.packed.forms import Form
from pytest_otval.task.source import source_of
from selftests.checks.conftest import SOUND, write_task

HEAD = '[dataset]\nname = "org/data"\nlicense = "MIT"\n'
UNLIKE = {"instruction.md": "Write 43.\n", "environment/Dockerfile": "FROM debian:12\n"}
NAMED = {**UNLIKE, "task.toml": SOUND["task.toml"] + '[task]\nname = "org/{}"\n'}


class Machine:
    """What the stage asks of a machine."""

    def __init__(self, folder, severity="error", here=lambda name: True):
        self.settings = SimpleNamespace(verdict=VerdictSettings(severity=Severity(severity)))
        self.checks = {"text-bom": None}
        self.scratch = SimpleNamespace(folder=folder / "scratch")
        self.bases_not_here = lambda names: [name for name in names if not here(name)]


@pytest.fixture(params=["folders", "tar", "parquet"])
def answer(tmp_path, request):
    """Make a dataset of tasks in a form, and return its answer: (id, severity, message, path, line, allowed)."""

    def run(tasks, toml=HEAD, **how):
        folder = tmp_path / "data"
        for name, edits in tasks.items():
            write_task(folder / "tasks" / name, edits)
        (folder / "dataset.toml").write_text(toml)
        if request.param != "folders":
            pack(folder, Form(request.param), tmp_path / "packed" / "data")
            folder = tmp_path / "packed" / "data"
        machine = Machine(tmp_path, **how)
        result = dataset_answer(machine, load_dataset(folder), source_of(folder))
        assert not list(machine.scratch.folder.glob("compared/*/*"))
        run.form = request.param
        run.result = result
        return [
            (one["check"], one["severity"], one["message"], one["path"], one["line"], one.get("allowed", ""))
            for one in result.facts["checks"]
        ]

    return run


def test_a_sound_dataset(answer):
    assert answer({"a": {}, "b": UNLIKE}, here=lambda name: True) == [
        (
            "ds-base-images",
            "info",
            "2 tasks stand on 2 base images: debian:bookworm-slim (1), debian:12 (1)",
            "dataset.toml",
            None,
            "",
        )
    ]
    assert answer.result.reason == "expected"


def found(answers, check):
    return [(severity, message) for id, severity, message, *_ in answers if id == check]


@pytest.mark.parametrize(
    ("edits", "severity", "message"),
    [
        ({}, "warning", "2 tasks have the same content: a, b"),
        (
            {"task.toml": SOUND["task.toml"] + '[task]\nname = "org/b"\n[metadata]\nx = 1\n'},
            "warning",
            "2 tasks have the same content but for names and metadata in task.toml: a, b",
        ),
        (
            {"task.toml": SOUND["task.toml"].replace("timeout_sec = 60", "timeout_sec = 90", 1)},
            "info",
            "2 tasks differ in task.toml only: a, b",
        ),
    ],
)
def test_tasks_that_are_the_same(answer, edits, severity, message):
    answers = answer({"a": {}, "b": edits, "c": UNLIKE})
    assert found(answers, "ds-duplicate-task") == [(severity, message)]
    assert found(answers, "ds-same-instruction") == []


@pytest.mark.parametrize("edits", [{"tests/test_outputs.py": "def test():\n    assert 0\n"}, {"environment/data": "1"}])
def test_tasks_of_one_instruction_that_are_not_the_same(answer, edits):
    answers = answer({"a": {}, "b": {**edits, "instruction.md": "Write  42 to\n/APP/answer.txt."}})
    assert found(answers, "ds-duplicate-task") == []
    assert found(answers, "ds-same-instruction") == [("info", "2 tasks have one instruction: a, b")]


def named(name, **edits):
    return {**UNLIKE, **edits, "task.toml": f'{SOUND["task.toml"]}[task]\nname = "org/{name}"\n'}


def test_two_tasks_of_one_name(answer):
    tasks = {"a": named("x"), "b": named("x", **{"instruction.md": "Another.\n"}), "c": named("y")}
    assert found(answer(tasks), "ds-duplicate-name") == [("error", "2 tasks have [task].name 'org/x': a, b")]
    assert answer.result.reason == "static-findings"


def test_the_place_is_the_second_of_them(answer):
    (path,) = {path for id, _, _, path, *_ in answer({"a": {}, "b": {}}) if id == "ds-duplicate-task"}
    assert path == {"folders": "tasks/b/task.toml", "tar": "tasks.tar", "parquet": "tasks.parquet"}[answer.form]


def test_many_names_are_cut(answer):
    answers = answer({f"t{number}": {} for number in range(8)})
    assert found(answers, "ds-duplicate-task") == [
        ("warning", "8 tasks have the same content: t0, t1, t2, t3, t4 and 3 more")
    ]


def test_what_is_not_in_the_store(answer):
    answers = answer({"a": {}, "b": UNLIKE}, here=lambda name: name == "debian:12")
    assert found(answers, "ds-images-absent") == [
        ("info", "1 of 2 base images are not in the store: debian:bookworm-slim")
    ]


def test_no_licence(answer):
    assert found(answer({"a": {}}, '[dataset]\nname = "org/data"\n'), "ds-licence") != []


def test_findings_of_dataset_toml_stay(answer):
    answers = answer({"a": {}}, HEAD + "[otval]\noracles = 1\n")
    assert found(answers, "ds-unknown-field") != []
    assert answer.result.reason == "static-findings"


def test_a_severity_is_heard(answer):
    answer({"a": {}, "b": {}}, severity="warning")
    assert answer.result.reason == "static-findings"


ENTRY = '[[otval.allow]]\ncheck = "{}"\ntasks = "{}"\nreason = "r"\nowner = "o"\nexpires = 2999-01-01\n'


@pytest.mark.parametrize(
    ("entry", "check", "says"),
    [
        (("text-bom", "a*"), "", ""),
        (("text-bom", "z*"), "allow-unused", "no task is called 'z*'"),
        (("text-bum", "a*"), "allow-unknown", "there is no check 'text-bum'"),
        (("toml-parse", "a*"), "allow-unused", "toml-parse cannot be allowed: correct the file"),
        (
            ("ds-licence", "*"),
            "allow-unused",
            "ds-licence is about the dataset: write a comment, # otval: allow ds-licence because ...",
        ),
    ],
)
def test_entries_without_effect(answer, entry, check, says):
    answers = answer({"a": {}}, HEAD + ENTRY.format(*entry))
    told = [(id, message, line) for id, _, message, _, line, _ in answers if id.startswith("allow")]
    assert told == ([(check, says, 4)] if check else [])


def test_a_comment_in_dataset_toml_allows(answer):
    comment = "# otval: allow ds-duplicate-task because they are a control\n"
    answers = answer({"a": {}, "b": {}}, HEAD + comment, severity="warning")
    assert [allowed for id, *_, allowed in answers if id == "ds-duplicate-task"] == ["they are a control"]
    assert answer.result.reason == "expected"


@pytest.mark.parametrize(
    ("comment", "check"),
    [
        ("allow ds-duplicate-task because x", "allow-unused"),
        ("allow text-bom because x", "allow-unused"),
        ("allow ds-duplicate-task", "allow-no-reason"),
    ],
)
def test_a_comment_without_effect_is_told(answer, comment, check):
    assert [(id, line) for id, _, _, _, line, _ in answer({"a": {}}, f"{HEAD}# otval: {comment}\n")] == [(check, 4)]


def test_bounds_are_told(answer, monkeypatch):
    monkeypatch.setattr(surveying, "MAX_PACKED", 1)
    monkeypatch.setattr(module, "MAX_UNPACKED", 1)
    answers = answer({"a": {}, "b": {}})
    if answer.form == "folders":
        assert found(answers, "ds-not-all-read") == []
    else:
        assert found(answers, "ds-not-all-read") == [("info", "1 of 2 tasks were not read")]


def test_a_folder_without_task_toml(tmp_path):
    folder = tmp_path / "data"
    write_task(folder / "tasks" / "a", {})
    (folder / "tasks" / "b\n").mkdir()
    (folder / "dataset.toml").write_text(HEAD)
    result = dataset_answer(Machine(tmp_path), load_dataset(folder), source_of(folder))
    (only,) = result.facts["checks"]
    assert (only["check"], only["severity"], only["path"]) == ("ds-no-task-toml", "warning", "tasks/b\\n")


def test_an_accepted_attack_that_there_is_none_of(answer):
    toml = (
        HEAD
        + "[otval.accepted]\n"
        + "".join(
            f'{name} = {{reason = "r", owner = "me", expires = 2100-01-01}}\n'
            for name in ("pth", "bash-replace", '"\u202e"')
        )
    )
    found = [one for one in answer({"a": {}}, toml) if one[0] == "ds-accepted-unknown"]
    assert [(one[1], one[3], one[4]) for one in found] == [
        ("warning", "dataset.toml", 6),
        ("warning", "dataset.toml", 7),
    ]
    assert "there is no attack 'bash-replace', did you mean bash-replaced?" in found[0][2]
    assert "\u202e" not in found[1][2]


def test_a_level_for_a_task_that_there_is_not(answer):
    toml = HEAD + '[otval.levels]\na = "fresh"\nbb = "masked"\n'
    found = [one for one in answer({"a": {}, "b": UNLIKE}, toml) if one[0] == "ds-levels-unknown"]
    assert [(one[1], one[3], one[4]) for one in found] == [("warning", "dataset.toml", 6)]
    assert "there is no task 'bb', did you mean b?" in found[0][2]
