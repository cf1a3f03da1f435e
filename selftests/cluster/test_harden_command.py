"""``python -m pytest_otval harden``."""

import pytest

from pytest_otval.__main__ import main
from pytest_otval.runtimes.record import VERIFIER_JSON, Reference, write_reference
from pytest_otval.runtimes.store import Runtimes
from pytest_otval.task.pack import pack
from pytest_otval.task.packed.forms import Form
from selftests.fakes import make_task
from selftests.runtimes.made import put

TEST = "#!/bin/bash\npytest /tests/test_x.py\n"
FILES = {"tests/test_x.py": "", "tests/test.sh": TEST, "environment/Dockerfile": "FROM debian:bookworm\n"}


@pytest.fixture
def task(tmp_path, monkeypatch):
    (tmp_path / "workspace").mkdir()
    monkeypatch.setenv("OT_WORKSPACE", str(tmp_path / "workspace"))
    monkeypatch.setenv("OT_RUNTIME_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return make_task(tmp_path, files=FILES).path


def test_without_the_runtime(task, capsys):
    assert main(["harden", str(task)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "python -m pytest_otval runtime build python-verifier" in err
    assert main(["harden", str(task), "--no-runtime"]) == 0
    assert '+"${OT_PYTHON:-python3}" -I -m pytest' in capsys.readouterr().out


def test_a_diff_then_the_change_then_nothing(task, tmp_path, capsys):
    put(Runtimes(tmp_path / "cache"), name="python-verifier", python="bin/python3")
    assert main(["harden", str(task.parent)]) == 0
    out, err = capsys.readouterr()
    assert f"+++ b/{str(task)[1:]}/tests/{VERIFIER_JSON}" in out
    assert "1 tasks, 1 to change" in err
    assert (task / "tests" / "test.sh").read_text() == TEST
    assert main(["harden", str(task), "--write"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{task}/tests/test.sh", f"{task}/tests/{VERIFIER_JSON}"]
    assert main(["harden", str(task), "--write"]) == 0
    assert "1 tasks, 0 changed" in capsys.readouterr().err


def test_a_runtime_of_the_tasks_own(task, capsys):
    own = Reference("tools-0123456789ab", "b" * 64, "/opt/tools")
    write_reference(task / "tests" / VERIFIER_JSON, own)
    assert main(["harden", str(task), "--shebang"]) == 0
    out, err = capsys.readouterr()
    assert '+"python3" -I -m pytest' in out
    assert "its runtime tools may have no pytest: give --runtime tools if it has" in err
    assert main(["harden", str(task), "--shebang", "--runtime", "tools"]) == 0
    out, err = capsys.readouterr()
    assert "+#!/opt/tools/bin/bash" in out
    assert err == "1 tasks, 1 to change\n"


def test_a_change_that_cannot_be_made(task, capsys):
    (task / "tests" / "test.sh").rename(task / "real.sh")
    (task / "tests" / "test.sh").symlink_to("../real.sh")
    assert main(["harden", str(task), "--write", "--no-runtime"]) == 1
    err = capsys.readouterr().err
    assert "not changed: tests/test.sh: " in err
    assert "1 tasks, 0 changed" in err


def test_a_packed_task_is_not_changed(task, tmp_path, capsys):
    pack(task.parent.parent, Form.TAR, tmp_path / "packed" / "set")
    assert main(["harden", str(tmp_path / "packed"), "--write", "--no-runtime"]) == 1
    err = capsys.readouterr().err
    assert "is packed: unpack the dataset" in err
    assert "1 tasks, 0 changed" in err
    assert main(["harden", str(tmp_path / "packed"), "--no-runtime"]) == 0
    assert "1 tasks, 1 to change" in capsys.readouterr().err


def test_names_that_steer_a_terminal(task, capsys):
    (task / "tests" / "\x1b[2Jrun.sh").write_text(TEST)
    (task / "tests" / "test.sh").write_text("#!/bin/bash\nbash '/tests/\x1b[2Jrun.sh'\n")
    assert main(["harden", str(task), "--write", "--no-runtime"]) == 0
    assert "\x1b" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("words", [[], ["--shebang", "--no-runtime", "."], ["nowhere"], ["empty"]])
def test_wrong_usage(task, tmp_path, capsys, words):
    (tmp_path / "empty").mkdir()
    try:
        status = main(["harden", *words])
    except SystemExit as stop:
        status = 4 if stop.code == 2 else stop.code
    assert status == 4
    assert capsys.readouterr().err
