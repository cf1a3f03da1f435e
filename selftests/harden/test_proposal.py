"""What is proposed for whole tasks, and how it is written."""

import json
import os
import stat
import subprocess

import pytest

from pytest_otval.checks.fixes import NotFixedError
from pytest_otval.harden.proposal import NewText, Wishes, propose
from pytest_otval.runtimes.record import VERIFIER_JSON, Reference, read_reference, write_reference
from pytest_otval.task.load import load_task
from selftests.conftest import REPOSITORY
from selftests.fakes import TOML, make_task

RUNTIME = Reference("python-verifier-0123456789ab", "a" * 64, "/opt/otval/runtimes/python-verifier")
WISHES = Wishes(RUNTIME, missing="there is none")
TEST = "#!/bin/bash\npytest /tests/test_x.py\n"
FILES = {"tests/test_x.py": "", "tests/test.sh": TEST, "environment/Dockerfile": "FROM debian:bookworm\n"}
TASKS = REPOSITORY / "selftests" / "data" / "hardening" / "tasks"


@pytest.fixture
def task(tmp_path):
    return make_task(tmp_path, files=FILES)


def test_script_and_runtime(task):
    proposal = propose(task, WISHES)
    assert [text.path for text in proposal.texts] == ["tests/test.sh", f"tests/{VERIFIER_JSON}"]
    script = task.path / "tests" / "test.sh"
    script.chmod(0o750)
    proposal.write(task.path)
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    assert b"OT_PYTHON" in script.read_bytes()
    assert read_reference(task.path / "tests" / VERIFIER_JSON) == RUNTIME
    assert sorted(path.name for path in script.parent.iterdir() if path.name.startswith(".")) == []
    assert propose(load_task(task.path, "x"), WISHES).texts == []


def test_the_diff_is_one_that_patch_takes(task, tmp_path):
    (task.path / "tests" / "test.sh").write_bytes(b"#!/bin/bash\r\n# \x0c \xff\r\npytest /tests/test_x.py")
    proposal = propose(load_task(task.path, "x"), WISHES)
    diff = b"".join(line for text in proposal.texts for line in text.diff("some/task"))
    copy = tmp_path / "patched" / "some" / "task"
    copy.parent.mkdir(parents=True)
    subprocess.run(["cp", "-r", task.path, copy], check=True)
    subprocess.run(["patch", "-p1", "-s", "--binary"], input=diff, cwd=tmp_path / "patched", check=True)
    proposal.write(task.path)
    for name in ("test.sh", VERIFIER_JSON):
        assert (copy / "tests" / name).read_bytes() == (task.path / "tests" / name).read_bytes()
    assert b"\r\n# \x0c \xff\r\n" in (copy / "tests" / "test.sh").read_bytes()


def test_the_pair_of_the_selftests():
    proposal = propose(load_task(TASKS / "published", "hardening"), WISHES)
    assert proposal.texts[0].after == (TASKS / "hardened" / "tests" / "test.sh").read_bytes()
    (only,) = propose(load_task(TASKS / "hardened", "hardening"), WISHES).texts
    assert only.path == f"tests/{VERIFIER_JSON}", "which names a file of the user's own cache"


def test_without_the_runtime_nothing_is_half_done(task):
    proposal = propose(task, Wishes(None, missing="there is none"))
    assert (proposal.texts, proposal.notes) == ([], ["tests/test.sh: there is none"])
    (only,) = propose(task, Wishes(None, may_have_runtime=False)).texts
    assert only.path == "tests/test.sh"


def test_the_runtimes_file_is_written_as_when_a_runtime_is_saved(task, tmp_path):
    saved = tmp_path / "saved.json"
    write_reference(saved, RUNTIME)
    assert propose(task, WISHES).texts[1].after == saved.read_bytes()


def test_a_runtime_that_the_task_has_is_kept(task):
    (task.path / "tests" / VERIFIER_JSON).write_text(json.dumps(RUNTIME.as_dict()))
    assert [text.path for text in propose(task, Wishes(None)).texts] == ["tests/test.sh"]
    (task.path / "tests" / VERIFIER_JSON).write_text("{")
    assert "names no runtime" in propose(task, WISHES).notes[0]


def test_another_runtime_of_the_task_is_not_taken_for_one_with_pytest(task):
    other = Reference("tools-0123456789ab", "b" * 64, "/opt/tools")
    (task.path / "tests" / VERIFIER_JSON).write_text(json.dumps(other.as_dict()))
    (task.path / "tests" / "test.sh").write_text("#!/bin/bash\npip install pytest\npytest /tests/test_x.py\n")
    for wishes in (Wishes(RUNTIME, own_shell=True), Wishes(None), Wishes(None, may_have_runtime=False)):
        proposal = propose(task, wishes)
        (only,) = proposal.texts
        assert only.after.startswith(b'#!/bin/bash\npip install pytest\n"python3" -I -m pytest ')
        why = "tests/test.sh: its runtime tools may have no pytest: give --runtime tools if it has"
        assert proposal.notes == ([why] if wishes.may_have_runtime else [])
    (only,) = propose(task, Wishes(None, own_shell=True, name="tools")).texts
    assert only.after.startswith(b"#!/opt/tools/bin/bash\nif [ -z")
    (task.path / "tests" / "test.sh").write_text("#!/bin/bash\nuvx pytest /tests/test_x.py\n")
    assert why in propose(load_task(task.path, "x"), WISHES).notes


def test_the_runtimes_shell(task):
    proposal = propose(task, Wishes(RUNTIME, own_shell=True))
    assert proposal.texts[0].after.startswith(b"#!/opt/otval/runtimes/python-verifier/bin/bash\n")
    asks = "#!/bin/bash\nsource ot-runtime.sh\not_runtime python-verifier || ./install\npytest /tests/test_x.py\n"
    (task.path / "tests" / "test.sh").write_text(asks)
    proposal = propose(load_task(task.path, "x"), Wishes(RUNTIME, own_shell=True))
    assert [text.after.startswith(b"#!/bin/bash\n") for text in proposal.texts] == [True]
    assert f"no {VERIFIER_JSON} names python-verifier" in proposal.notes[0]


def test_scripts_that_the_test_script_names(task):
    (task.path / "tests" / "test.sh").write_text("#!/bin/bash\nbash /tests/run.sh\n")
    (task.path / "tests" / "run.sh").write_text(TEST)
    paths = [text.path for text in propose(load_task(task.path, "x"), WISHES).texts]
    assert paths == ["tests/run.sh", f"tests/{VERIFIER_JSON}"]


def test_the_runtimes_file_lies_where_trials_look_for_it(task):
    (task.path / "tests" / "sub").mkdir()
    (task.path / "tests" / "test.sh").write_text("#!/bin/bash\nbash /tests/sub/run.sh\n")
    (task.path / "tests" / "sub" / "run.sh").write_text(TEST)
    propose(load_task(task.path, "x"), WISHES).write(task.path)
    assert b"OT_PYTHON" in (task.path / "tests" / "sub" / "run.sh").read_bytes()
    assert read_reference(task.path / "tests" / VERIFIER_JSON) == RUNTIME


def test_of_steps_that_share_a_script_each_finds_the_runtime(tmp_path):
    toml = TOML + '\n[[steps]]\nname = "one"\n\n[[steps]]\nname = "two"\n'
    names = {"instruction.md": "x\n", "tests/test.sh": "#!/bin/bash\nbash /tests/run.sh\n"}
    files = {f"steps/{step}/{name}": text for step in ("one", "two") for name, text in names.items()}
    task = make_task(tmp_path, files={"tests/run.sh": TEST, "tests/test_x.py": "", **files}, toml=toml)
    propose(task, WISHES).write(task.path)
    for step in load_task(task.path, "x").steps:
        assert any(read_reference(folder / VERIFIER_JSON) == RUNTIME for folder in (step.tests, step.shared_tests))


def test_steps_share_what_they_share(tmp_path):
    toml = TOML + '\n[[steps]]\nname = "one"\n\n[[steps]]\nname = "two"\n'
    files = {f"steps/{step}/{name}": "x\n" for step in ("one", "two") for name in ("instruction.md", "tests/data.txt")}
    proposal = propose(make_task(tmp_path, files={**FILES, **files}, toml=toml), WISHES)
    assert [text.path for text in proposal.texts] == ["tests/test.sh", f"tests/{VERIFIER_JSON}"]


@pytest.mark.parametrize("toml", ["x =", TOML + '\n[verifier.environment]\nos = "linux"\n'])
def test_where_there_is_nothing_to_do_it_says_why(tmp_path, toml):
    files = {**FILES, "tests/Dockerfile": "FROM debian\n"}
    task = make_task(tmp_path, files=files, toml=toml)
    proposal = propose(task, WISHES)
    assert proposal.texts == []
    assert len(proposal.notes) == 1


def test_hostile_files(task, tmp_path):
    script = task.path / "tests" / "test.sh"
    outside = tmp_path / "outside.sh"
    outside.write_text(TEST)
    for make in (
        lambda: script.symlink_to(outside),
        lambda: os.mkfifo(script),
        lambda: script.write_bytes(b"#!/bin/bash\n\0pytest /tests\n"),
        lambda: script.write_bytes(b"#!/bin/bash\npytest /tests\n#" + b"x" * 2**21),
        lambda: script.mkdir(),
    ):
        if script.is_dir():
            script.rmdir()
        script.unlink(missing_ok=True)
        make()
        assert propose(load_task(task.path, "x"), WISHES).texts == []
    assert outside.read_text() == TEST


@pytest.mark.parametrize("after", [b"", b"\n", b"a", b"a\rb\x0cc\n\nd\n", b"a\n\n\nb\r"])
def test_lines_of_a_diff_end_with_a_line_feed_only(after, tmp_path):
    file = tmp_path / "file"
    for before in (b"a\rb\n\nc", b"b\r\n"):
        file.write_bytes(before)
        diff = b"".join(NewText("file", before, after).diff("x"))
        subprocess.run(["patch", "-s", "--binary", file], input=diff, check=True)
        assert (file.read_bytes() if file.exists() else b"") == after


def test_nothing_is_written_through_links_or_over_changes(task, tmp_path):
    proposal = propose(task, WISHES)
    script = task.path / "tests" / "test.sh"
    script.write_text(TEST + "true\n")
    with pytest.raises(NotFixedError, match=r"tests/test\.sh: it was changed meanwhile"):
        proposal.write(task.path)
    (task.path / "tests").rename(tmp_path / "elsewhere")
    (task.path / "tests").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotFixedError):
        proposal.write(task.path)
    assert not (tmp_path / "elsewhere" / VERIFIER_JSON).exists()


def test_a_file_that_is_there_is_not_replaced(task):
    proposal = propose(task, WISHES)
    (task.path / "tests" / VERIFIER_JSON).symlink_to("/etc/passwd")
    with pytest.raises(NotFixedError):
        proposal.write(task.path)
    assert (task.path / "tests" / VERIFIER_JSON).is_symlink()
