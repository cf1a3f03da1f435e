import os

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.runtimes import script
from pytest_otval.runtimes.script import asking_of_agent, asking_of_verifier
from selftests.fakes import make_task

CALL = "ot_runtime tools || { cp /setup_files/list $OT_RUNTIME; ot_runtime_save; }"


def agent_asks(tmp_path, text, **files):
    files = {f"setup_files/{name}": content for name, content in files.items()}
    task = make_task(tmp_path, files={"setup_files/setup.sh": text, **files})
    return asking_of_agent(task)


@pytest.mark.parametrize(
    "call",
    [
        CALL,
        "ot_runtime 'tools' || exit",
        "if ! ot_runtime tools; then\n  touch $OT_RUNTIME/x\n  ot_runtime_save\nfi",
        "function f() {\n ot_runtime tools || exit 1\n}\nf",
        "ot_runtime tools",
    ],
)
def test_name(tmp_path, call):
    asking = agent_asks(tmp_path, f"#!/bin/bash\nset -e\n. ot-runtime.sh\n{call}\necho ot_runtime_other\n")
    assert (asking.name, asking.script, asking.seen_at) == ("tools", "setup.sh", "/setup_files")
    assert asking.json == asking.folder / "ot-task-runtime.json"


@pytest.mark.parametrize(
    "call", ["ot_runtime $NAME || exit", "echo", "ot_runtime a || exit; ot_runtime b || exit", "("]
)
def test_a_name_that_is_not_plain_is_refused(tmp_path, call):
    with pytest.raises(Conclusion, match="plain name") as caught:
        agent_asks(tmp_path, f". ot-runtime.sh\n{call}\n")
    assert caught.value.reason == "bad-task"


def test_who_does_not_source_the_helper_asks_for_nothing(tmp_path):
    assert agent_asks(tmp_path, "ot_runtime tools\n") is None
    task = make_task(tmp_path / "other")
    assert asking_of_agent(task) is None
    assert asking_of_verifier(task.steps[0]) is None


def test_the_verifiers_set_up_goes_before_its_test(tmp_path):
    text = "#!/bin/bash\n. ot-runtime.sh\not_runtime {} || exit\n"
    files = {"tests/test.sh": text.format("late"), "tests/setup.sh": text.format("early")}
    task = make_task(tmp_path, files=files)
    asking = asking_of_verifier(task.steps[0])
    assert (asking.name, asking.script, asking.json.name) == ("early", "setup.sh", "ot-verifier-runtime.json")
    (task.path / "tests" / "setup.sh").unlink()
    assert asking_of_verifier(task.steps[0]).name == "late"


def definition(tmp_path, text, **files):
    tmp_path.mkdir(exist_ok=True)
    return agent_asks(tmp_path, f". ot-runtime.sh\n{text}\n", **files).definition


def test_tasks_share_what_installs_alike(tmp_path):
    first = definition(tmp_path / "1", CALL, list="a")
    assert definition(tmp_path / "2", f"echo before\n{CALL}\necho after", list="a", other="b") == first
    assert definition(tmp_path / "3", CALL, list="b") != first
    assert definition(tmp_path / "4", CALL.replace("cp", "mv"), list="a") != first


def test_what_lies_in_folders_that_are_named_counts(tmp_path):
    call = "ot_runtime tools || { pip install -r /setup_files/lib/req.txt; ot_runtime_save; }"
    files = {"lib/req.txt": "a", "lib/deep/er": "b"}
    first = definition(tmp_path / "1", call, **files)
    assert definition(tmp_path / "2", call, **files, **{"other/x": "c"}) == first
    assert definition(tmp_path / "3", call, **{**files, "lib/req.txt": "b"}) != first
    assert definition(tmp_path / "4", call, **{**files, "lib/deep/er": "c"}) != first
    assert definition(tmp_path / "5", call, **{"lib/req.txt": "a", "lib/deep/er2": "b"}) != first


def test_links_in_a_folder_that_is_named_are_not_read(tmp_path):
    files = {"setup_files/setup.sh": f". ot-runtime.sh\n{CALL}\n", "setup_files/list/a": "x"}
    task = make_task(tmp_path, files=files)
    before = asking_of_agent(task).definition
    (task.path / "setup_files/list/etc").symlink_to("/etc")
    (task.path / "setup_files/list/gone").symlink_to("gone")
    os.mkfifo(task.path / "setup_files/list/fifo")
    assert asking_of_agent(task).definition == before


def test_more_than_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(script, "_MAX_NAMED_BYTES", 3)
    asking = agent_asks(tmp_path, f". ot-runtime.sh\n{CALL}\n", **{"list/a": "12", "list/b": "34"})
    with pytest.raises(Conclusion, match="what installs tools names files of more than 0 MiB: name") as caught:
        asking.definition  # noqa: B018
    assert caught.value.reason == "bad-task"


@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_special_files_are_not_read(tmp_path, kind):
    task = make_task(tmp_path, files={"setup_files/data": ""})
    path = task.path / "setup_files" / "setup.sh"
    os.mkfifo(path) if kind == "fifo" else path.symlink_to("/etc/passwd")
    assert asking_of_agent(task) is None
