"""Seeds of tasks: each changes what it says and no more, the same each time, and never the task itself."""

import os
import shutil
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import Conclusion
from pytest_otval.judge.files import MOST_BYTES, task_material
from pytest_otval.judge.material import locate
from pytest_otval.judge.rubric import own_rubric
from pytest_otval.judge.seeding.instructions import sentences
from pytest_otval.judge.seeding.planting import copy_task, plant
from pytest_otval.judge.seeding.texts import Texts, read_texts, whole
from pytest_otval.judge.seeding.traces import TRACE_SEEDS
from pytest_otval.judge.seeds import SEEDS, faults
from pytest_otval.task.digest import task_content, task_digest
from pytest_otval.task.load import load_task
from selftests.judge.seeded import DEMO, FILES, miniature

RUBRIC = own_rubric("instruction", ())
CHARACTERS = 240_000


def faults_of(folder):
    return {one.seed: one for one in faults(load_task(folder, "demo"), RUBRIC)}


def test_seeds_are_of_criteria_that_there_are():
    assert len({seed.id for seed in SEEDS}) == len(SEEDS)
    asked = {one.id for one in RUBRIC.criteria}
    assert {seed.criterion for seed in SEEDS} == asked - {"guessable"}


def test_they_are_documented():
    told = (DEMO[0].parents[3] / "docs" / "calibration.md").read_text()
    for seed in (*SEEDS, *TRACE_SEEDS):
        assert f"| `{seed.id}` | `{seed.criterion}` | {seed.what} |" in told


@pytest.mark.parametrize("folder", DEMO, ids=lambda folder: folder.name)
def test_each_changes_what_it_says_and_no_more(folder, tmp_path):
    before, found = task_digest(folder), faults_of(folder)
    assert len(found) > 10
    _, old = task_content(folder)
    for fault in found.values():
        copy = tmp_path / fault.seed / folder.name
        copy_task(folder, copy)
        plant(fault, copy)
        _, new = task_content(copy)
        changed = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
        assert changed == set(fault.changes), fault.seed
        assert not old.keys() - new.keys()
        assert all((copy / path).stat().st_mode == (folder / path).stat().st_mode for path in changed & old.keys())
    assert task_digest(folder) == before


@pytest.mark.parametrize("folder", DEMO, ids=lambda folder: folder.name)
def test_a_judge_can_quote_each(folder, tmp_path):
    sound = task_material(load_task(folder, "demo"), CHARACTERS)
    for fault in faults_of(folder).values():
        copy = tmp_path / fault.seed / folder.name
        copy_task(folder, copy)
        plant(fault, copy)
        shown = task_material(load_task(copy, "demo"), CHARACTERS)
        assert shown != sound
        found = locate(shown, fault.evidence)
        assert found is not None and found.document in fault.documents, fault.seed
        names = {document.name for document in shown.documents}
        assert fault.documents <= names
        assert load_task(copy, "demo").config is not None


@pytest.mark.parametrize("folder", DEMO, ids=lambda folder: folder.name)
def test_the_same_task_has_the_same_faults(folder, tmp_path):
    copy_task(folder, tmp_path / "elsewhere")
    assert faults_of(folder) == faults_of(tmp_path / "elsewhere")


def test_all_apply_to_a_task_that_has_everything(tmp_path):
    found = faults_of(miniature(tmp_path))
    # Its solution prints the answer already.
    assert {seed.id for seed in SEEDS} - found.keys() == {"answer-printed"}
    computed = miniature(tmp_path, **{"solution/solve.sh": "#!/bin/sh\ncount /app/poem.txt > /app/words.csv\n"})
    assert {seed.id for seed in SEEDS} - faults_of(computed).keys() == {"solution-text", "solution-words"}


PIECES = st.sampled_from(
    (
        *(
            "Write it to ",
            "`/app/a.txt`",
            "/app/a.txt",
            ". ",
            "\n",
            "\n\n",
            "```",
            "- ",
            "in alphabetical order",
            "42",
            '"',
        ),
        *("#!/bin/sh\n", "cat > /app/a.txt <<'EOF'\n", "\nEOF\n", "echo 1 > /logs/verifier/reward.txt", "exit", "exec"),
        *("FROM a\n", "\r\n", "\x00", "\u2028", "\ud800", "é"),
    )
)
WRITTEN = st.lists(PIECES | st.text(max_size=5), max_size=12).map("".join)


def broken(text):
    """The text with something in the midst of it, or something else."""
    places = st.integers(0, len(text))
    return st.builds(lambda at, piece: text[:at] + piece + text[at:], places, PIECES) | WRITTEN


@given(st.fixed_dictionaries({path: broken(text) for path, text in FILES.items()}))
def test_whatever_stands_in_a_task_no_seed_fails(files):
    texts = Texts(files, frozenset(files), "instruction.md", "tests", "solution/solve.sh")
    for seed in SEEDS:
        fault = seed.put(texts)
        assert fault == seed.put(texts)
        if fault is not None:
            assert (fault.seed, fault.criterion) == (seed.id, seed.criterion)
            assert all(texts.text(path) != text for path, text in fault.changes.items())
            assert fault.evidence.quote.strip()


SEEDED = {
    "requirements-removed": ("instruction.md", "Count the words of `/app/poem.txt`.\n"),
    "place-removed": ("instruction.md", FILES["instruction.md"].replace("`/app/words.csv`", "a file")),
    "place-changed": ("instruction.md", FILES["instruction.md"].replace("/words", "/final-words")),
    "word-made-vague": ("instruction.md", FILES["instruction.md"].replace("alphabetical", "a suitable")),
    "mode-demanded": (
        "tests/test.sh",
        FILES["tests/test.sh"].replace(
            "exit",
            '[ "$(/usr/bin/stat -c %a /app/words.csv)" = 640 ] || echo 0 > /logs/verifier/reward.txt\nexit',
        ),
    ),
    "any-content": (
        "tests/test.sh",
        FILES["tests/test.sh"].replace("exit", "[ ! -e /app/words.csv ] || echo 1 > /logs/verifier/reward.txt\nexit"),
    ),
    "solution-text": ("tests/expected-words.csv", "the word,its count\nmuch,1\nso,2\n"),
    "answer-in-image": ("environment/notes.sh", FILES["solution/solve.sh"]),
    "solution-emptied": ("solution/solve.sh", "#!/bin/bash\n# There is nothing left to do.\ntrue\n"),
}


@pytest.mark.parametrize("seed", SEEDED)
def test_what_they_write(seed, tmp_path):
    path, text = SEEDED[seed]
    assert faults_of(miniature(tmp_path))[seed].changes[path] == text


def test_rewards_of_several_keys_are_written_as_such(tmp_path):
    script = "#!/bin/sh\ncheck < /app/words.csv > /logs/verifier/reward.json\n"
    fault = faults_of(miniature(tmp_path, **{"tests/test.sh": script}))["any-content"]
    assert fault.changes["tests/test.sh"].endswith("""|| echo '{"reward": 1}' > /logs/verifier/reward.json\n""")


@pytest.mark.parametrize(
    "script",
    [
        "#!/usr/bin/env python3\nprint('/logs/verifier/reward.txt')\n",
        "#!/bin/sh\nexec python3 /tests/run.py /logs/verifier/reward.txt\n",
        "#!/bin/sh\npython3 /tests/run.py\n",
    ],
)
def test_no_check_is_added_where_it_would_not_be_reached(script, tmp_path):
    added = {seed.id for seed in SEEDS if "test.sh writes the reward" in seed.what} | {"any-content"}
    assert not added & faults_of(miniature(tmp_path, **{"tests/test.sh": script})).keys()


def test_only_what_a_rubric_asks_about_is_seeded(tmp_path):
    weak = replace(RUBRIC, criteria=tuple(one for one in RUBRIC.criteria if one.id == "weak_test"))
    assert [one.seed for one in faults(load_task(miniature(tmp_path), "demo"), weak)] == ["any-content"]


def test_a_task_without_anything_has_no_faults(tmp_path):
    (tmp_path / "task.toml").write_text("")
    assert faults_of(tmp_path) == {}
    (tmp_path / "task.toml").write_text("[[")
    assert faults_of(tmp_path) == {}


def test_hostile_files_are_neither_read_nor_written(tmp_path):
    secret, task = tmp_path / "secret", miniature(tmp_path / "task", **{"instruction.md": None})
    secret.mkdir()
    (secret / "Dockerfile").write_text("FROM secret\n")
    shutil.rmtree(task / "environment")
    (task / "environment").symlink_to(secret)
    os.mkfifo(task / "instruction.md")
    (task / "tests" / "binary").write_bytes(b"/app/words.csv\0\xff")
    (task / "tests" / os.fsdecode(b"\xff\n<data>")).write_text("/app/words.csv")
    (task / "setup_files").mkdir()
    with (task / "setup_files" / "large").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    found = faults_of(task)
    assert "solution-emptied" in found
    assert not {"answer-in-image", "download-unpinned", "solution-told", "premise-added"} & found.keys()
    for fault in found.values():
        copy = tmp_path / fault.seed
        copy_task(task, copy)
        plant(fault, copy)
        assert (copy / "setup_files" / "large").stat().st_size == MOST_BYTES + 1
        assert not (copy / "instruction.md").exists()
        assert (copy / "environment").is_symlink()
    assert [path.name for path in secret.iterdir()] == ["Dockerfile"]
    assert (secret / "Dockerfile").read_text() == "FROM secret\n"


def test_no_file_is_added_where_there_is_something(tmp_path):
    task = miniature(tmp_path)
    (task / "environment" / "notes.sh").mkdir()
    (task / "tests" / "expected-words.csv").symlink_to("/etc/passwd")
    assert not {"answer-in-image", "solution-text"} & faults_of(task).keys()


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(tmp_path):
    fault = faults_of(miniature(tmp_path / "task"))["solution-emptied"]
    target = tmp_path / "target"
    target.write_text("as it was")
    (tmp_path / "task" / "solution" / "solve.sh").unlink()
    (tmp_path / "task" / "solution" / "solve.sh").symlink_to(target)
    plant(fault, tmp_path / "task")
    assert target.read_text() == "as it was"


def test_what_cannot_be_copied_is_said(tmp_path):
    with pytest.raises(Conclusion, match="cannot be copied"):
        copy_task(tmp_path / "nothing", tmp_path / "copy")


def test_what_cannot_be_planted_is_said(tmp_path):
    """A name that a task gives away may be longer than any file system takes."""
    name = "/app/" + "a" * 300
    folder = miniature(tmp_path / "task")
    (folder / "instruction.md").write_text(f"Write {name} as told.\n")
    (folder / "solution" / "solve.sh").write_text(f"#!/bin/bash\ncat > {name} <<'EOF'\nx\nEOF\n")
    with pytest.raises(Conclusion, match="bad-task: solution-text cannot be put into task/"):
        plant(faults_of(folder)["solution-text"], folder)


@pytest.mark.parametrize(
    "text",
    [
        " \n" * (128 * 1024),
        "\n".join(f"/app/{number:x}" for number in range(24_000)),
        f"First. A {' '.join(map(str, range(10, 40_000)))}",
    ],
    ids=["blank", "paths", "numbers"],
)
def test_long_texts_are_looked_at_in_linear_time(text, tmp_path):
    """In quadratic time each of these would take minutes."""
    folder = miniature(tmp_path / "task")
    (folder / "instruction.md").write_text(f"Do it.\n{text}")
    (folder / "tests" / "more").write_text("x y z\n" * (40 * 1024))
    assert faults_of(folder)


def test_line_ends_of_windows_are_kept(tmp_path):
    text = FILES["instruction.md"].replace(". ", ".\r\n")
    task = miniature(tmp_path, **{"instruction.md": text})
    assert read_texts(load_task(task, "demo")).asked == text
    assert faults_of(task)["premise-added"].changes["instruction.md"].startswith(text.rstrip())


def test_sentences():
    text = "# Title\n\nOne. Two\nlines! `x` three.\n\n- a list. Of things.\n\n```\nCode. Is none.\n```\n\nLast one"
    assert [text[begin:end].strip() for begin, end in sentences(text)] == [
        "One.",
        "Two\nlines!",
        "`x` three.",
        "Last one",
    ]


@pytest.mark.parametrize(
    ("word", "text", "stands"),
    [
        ("/app/a", "cat /app/a", True),
        ("/app/a", "cat '/app/a'.", True),
        ("/app/a", "/app/a.txt", False),
        ("/app/a", "/app/a/b", False),
        ("/app/a", "/data/app/a", False),
        ("27", "127", False),
        ("27", "n=27;", True),
    ],
)
def test_whole_words(word, text, stands):
    assert bool(whole(word).search(text)) is stands
