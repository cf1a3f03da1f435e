"""What is shown of a task, whatever lies in its folder."""

import os
import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_otval.judge.blocks import block
from pytest_otval.judge.files import MOST_BYTES, task_material
from pytest_otval.judge.material import locate
from pytest_otval.judge.model import Evidence
from pytest_otval.judge.prompts import review_messages
from pytest_otval.task.load import load_task
from selftests.judge.snapshots import TASK

PLENTY = 200_000


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "task"


def write(folder, **files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())


def material_of(folder, characters=PLENTY):
    return task_material(load_task(folder, "demo"), characters)


def shown(material):
    return {one.name: one.text for one in material.documents}


def size_of(material):
    """Return the characters that a prompt has for it."""
    parts = [(one.name, one.text) for one in material.documents]
    parts += [("not shown", "\n".join(material.left_out))] if material.left_out else []
    return sum(len(block("0" * 32, *part)) for part in parts)


def test_the_files_that_matter_in_their_order(folder):
    names = (
        "solution/solve.sh",
        "tests/z.py",
        "tests/test.sh",
        "instruction.md",
        "task.toml",
        "environment/Dockerfile",
    )
    others = ("README.md", "trajectory.json", ".git/config", "notes/tests/a")
    write(folder, **dict.fromkeys((*names, "environment/app/a.py", *others), "x = 1\n"))
    assert list(shown(material_of(folder))) == [
        "task.toml",
        "instruction.md",
        "environment/Dockerfile",
        "environment/app/a.py",
        "tests/test.sh",
        "tests/z.py",
        "solution/solve.sh",
    ]


def test_steps_stand_one_after_the_other(folder):
    names = [f"steps/{step}/{name}" for step in ("b", "a") for name in ("tests/test.sh", "instruction.md")]
    write(folder, **dict.fromkeys(("task.toml", "tests/shared.py", *names, "steps/loose"), ""))
    found = list(shown(material_of(folder)))
    assert found == ["task.toml", "tests/shared.py", *(name for name in reversed(names) if "/a/" in name)] + [
        name for name in reversed(names) if "/b/" in name
    ]


def test_what_is_no_text_or_too_large_is_told_by_name_and_size(folder):
    write(folder, **{"task.toml": "", "environment/a.bin": b"ab\0", "tests/big.txt": b"x" * (MOST_BYTES + 1)})
    material = material_of(folder)
    assert list(shown(material)) == ["task.toml"]
    assert material.left_out == (
        "environment/a.bin: has 3 bytes, which are no text",
        f"tests/big.txt: has {MOST_BYTES + 1} bytes, which are too many",
    )


def test_nothing_but_regular_files_is_opened(folder, tmp_path, monkeypatch):
    (tmp_path / "secret").write_text("sesame")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.sh").write_text("sesame")
    write(folder, **{"task.toml": "", "environment/Dockerfile": "FROM x\n"})
    (folder / "tests").symlink_to(tmp_path / "elsewhere")
    (folder / "instruction.md").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / "environment" / "pipe")
    # Paths of sockets are short.
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("environment/socket")
    material = material_of(folder)
    assert "sesame" not in str(material)
    assert str(tmp_path) not in str(material)
    assert list(shown(material)) == ["task.toml", "environment/Dockerfile"]
    assert material.left_out == (
        "instruction.md: is a link",
        "environment/pipe: is no regular file",
        "environment/socket: is no regular file",
        "tests: is a link",
    )


def test_names_and_texts_are_readable(folder):
    write(folder, **{"task.toml": "", "tests/\x1b[2J\n\u202e": b"caf\xe9 \xef\xbb\xbf\r\n\x07"})
    assert shown(material_of(folder)) == {"task.toml": "", "tests/\\x1b[2J\\n\\u202e": "caf\\xe9 \\ufeff\n\\x07"}
    folder.joinpath(os.fsdecode(b"tests/\xff")).write_text("x")
    assert shown(material_of(folder))["tests/\\udcff"] == "x"


def test_a_folder_that_is_no_task_has_no_documents(folder):
    assert material_of(folder).documents == ()


def test_a_task_that_is_too_long_shows_what_matters(folder):
    files = {
        "task.toml": "t\n",
        "instruction.md": "i\n",
        "tests/test.sh": "run\n" * 100,
        "tests/data.json": "[0]\n" * 9000,
    }
    write(folder, **files, **{f"environment/{number}.py": "pass\n" * 1000 for number in range(20)})
    material = material_of(folder, 20_000)
    found = shown(material)
    assert [found[name] for name in list(files)[:3]] == list(files.values())[:3]
    assert 10_000 < len(found["tests/data.json"]) < 15_000
    assert len(found) < 20
    assert "tests/data.json: is not shown as a whole" in material.left_out
    assert "environment/9.py: there was no place for it" in material.left_out
    assert size_of(material) <= 20_000


def test_lines_of_quotes_are_those_of_the_file(folder):
    write(folder, **{"tests/data": "".join(f"line {number}\n" for number in range(1, 5001))})
    material = material_of(folder, 5000)
    assert locate(material, Evidence("tests/data", "line 4999")).line == 4999
    assert locate(material, Evidence("tests/data", "line 3000")) is None


def test_more_names_than_anybody_reads_are_counted(folder):
    write(folder, **{f"environment/{number}.bin": b"\0" for number in range(500)})
    material = material_of(folder, 5000)
    assert len(material.left_out) < 20
    assert material.left_out[-1] == f"and {501 - len(material.left_out)} more"
    assert size_of(material) <= 5000


def test_a_file_that_goes_away_or_may_not_be_read_is_told(folder, monkeypatch):
    write(folder, **{"task.toml": "", "tests/a": "x", "tests/b": "x"})

    def read(path, limit):
        raise FileNotFoundError(2, "No such file or directory") if path.name == "a" else PermissionError(13, "denied")

    monkeypatch.setattr("pytest_otval.judge.files.read_regular", read)
    assert material_of(folder).left_out[1:] == (
        "tests/a: cannot be read: No such file or directory",
        "tests/b: cannot be read: denied",
    )


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=40).filter(
    lambda name: name not in (".", "..") and len(name.encode()) < 200
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.dictionaries(NAMES, st.binary(max_size=100) | st.integers(0, 20_000).map(b"line\n".__mul__), max_size=8),
    st.data(),
)
def test_no_task_exceeds_the_budget(tmp_path_factory, files, data):
    folder = tmp_path_factory.mktemp("task")
    tops = st.sampled_from(["environment", "tests", "solution", "steps/a/tests", "other"])
    write(folder, **{f"{data.draw(tops)}/{name}": content for name, content in files.items()})
    characters = data.draw(st.integers(1000, 50_000))
    material = material_of(folder, characters)
    assert size_of(material) <= characters
    prompt, empty = (review_messages(TASK, one)[1]["content"] for one in (material, type(material)(())))
    assert len(prompt) - len(empty) == size_of(material)
    assert str(folder) not in prompt
