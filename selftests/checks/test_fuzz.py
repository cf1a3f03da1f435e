"""Whole trees of hostile content, in a process that watches what it opens (fuzz.py; more by hand)."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("seed", ["1", "2"])
def test_no_tree_is_too_strange(seed):
    """The time limit finds what hangs; what is merely slow is for fuzz.py by hand, on a quiet machine."""
    command = [sys.executable, "-m", "selftests.checks.fuzz", "60", "--seed", seed, "--seconds", "30"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]


WATCHED = """
import os, subprocess, sys
from pathlib import Path
from selftests.checks.watch import Watch
root = Path(sys.argv[1])
watch = Watch()
with watch.over(root):
    {}
print(watch.seen)
"""


@pytest.mark.parametrize(
    ("act", "seen"),
    [
        ("(root / 'file').read_text()", False),
        ("os.close(os.open(root / 'file', os.O_RDONLY | os.O_NOFOLLOW))", False),
        ("list(os.scandir(root))", False),
        ("subprocess.run(['bash', '-n'], stdin=subprocess.DEVNULL)", False),
        ("(root / 'link').read_text()", True),
        ("(root / 'folder' / 'outside').read_text()", True),
        ("os.close(os.open(root / 'folder' / 'outside', os.O_RDONLY | os.O_NOFOLLOW))", True),
        ("open('/etc/hostname')", True),
        ("os.listdir(root / 'folder')", True),
        ("(root / 'file').write_text('x')", True),
        ("(root / 'file').chmod(0)", True),
        ("subprocess.run(['true'])", True),
    ],
)
def test_the_watch_sees(tmp_path, act, seen):
    (tmp_path / "task").mkdir()
    (tmp_path / "outside").write_text("")
    (tmp_path / "task" / "file").write_text("")
    (tmp_path / "task" / "link").symlink_to("../outside")
    (tmp_path / "task" / "folder").symlink_to("..")
    command = [sys.executable, "-c", WATCHED.format(act), tmp_path / "task"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout.strip() != "[]") is seen, done.stdout
