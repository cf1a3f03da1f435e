"""Modules of the product and paths, as texts of a task name them."""

import pytest

from pytest_otval.attacks import names
from selftests.fakes import make_task


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Fix `/app/src/mod.py`.", ["/app/src/mod.py"]),
        ("edit mod.py, then a-b/c.py; see x.pyc and .py", ["mod.py", "a-b/c.py"]),
        ("--- a/pkg/one.py\n+++ b/pkg/one.py", ["pkg/one.py"]),
        ("run tests/test_x.py, test_y.py, z_test.py, conftest.py, /tests/run.py and setup.py", []),
        ("../up.py https://x.org/y.py", []),
    ],
)
def test_modules(tmp_path, text, found):
    task = make_task(tmp_path, files={"instruction.md": text})
    assert names.modules(task.steps) == found


def test_modules_of_the_solution(tmp_path):
    files = {"solution/fix.patch": "+++ b/pkg/one.py\n", "solution/note.md": "two.py\n"}
    task = make_task(tmp_path, solve="cat > /app/three.py", files=files)
    assert names.modules(task.steps) == ["pkg/one.py", "/app/three.py"]


def test_hostile_texts(tmp_path):
    task = make_task(tmp_path, files={"instruction.md": " ".join(f"m{n}.py" for n in range(200))})
    (task.path / "solution" / "loop.patch").symlink_to("/proc/self/mem")
    assert len(names.modules(task.steps)) == names.MOST_NAMES
    (task.path / "instruction.md").unlink()
    (task.path / "instruction.md").symlink_to("/etc/passwd")
    assert names.paths(task.steps) == []


def test_paths(tmp_path):
    text = "Write /app/out.txt. Also `/data/a-b/c`; not /usr/bin/x, /tests/t, http://a/b/c, a/b/c or /x."
    assert names.paths(make_task(tmp_path, files={"instruction.md": text}).steps) == ["/app/out.txt", "/data/a-b/c"]
