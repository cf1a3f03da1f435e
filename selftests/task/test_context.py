"""The build context and its patterns."""

import os

import pytest

from pytest_otval.task.context import has_wildcard, list_context


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "context"
    for name in ("a.txt", "b.py", "sub/c.txt", "sub/deep/d.txt", "node/x.js", "node/keep/y.js"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def names(root):
    return list(list_context(root).entries)


def test_everything_without_ignore_file(folder):
    assert names(folder) == [
        "a.txt",
        "b.py",
        "node",
        "node/keep",
        "node/keep/y.js",
        "node/x.js",
        "sub",
        "sub/c.txt",
        "sub/deep",
        "sub/deep/d.txt",
    ]


@pytest.mark.parametrize(
    ("ignore", "left"),
    [
        ("*.txt\n", {"b.py", "sub/c.txt", "sub/deep/d.txt", "node/x.js", "node/keep/y.js"}),
        ("**/*.txt\n", {"b.py", "node/x.js", "node/keep/y.js"}),
        ("# *.py\n/sub/\n", {"a.txt", "b.py", "node/x.js", "node/keep/y.js"}),
        ("node\n!node/keep\n", {"a.txt", "b.py", "sub/c.txt", "sub/deep/d.txt", "node/keep/y.js"}),
        ("*\n!sub/*/d.txt\n", {"sub/deep/d.txt"}),
        ("*\n!b.py\nb.py\n", set()),
        ("sub/**\n", {"a.txt", "b.py", "node/x.js", "node/keep/y.js"}),
        ("[ab].*\n./sub/../node\n", {"sub/c.txt", "sub/deep/d.txt"}),
    ],
)
def test_dockerignore(folder, ignore, left):
    (folder / ".dockerignore").write_text(ignore + ".dockerignore\n")
    assert {path for path, entry in list_context(folder).entries.items() if entry.kind == "file"} == left


def test_malformed_dockerignore_names_its_line(folder):
    (folder / ".dockerignore").write_text("x\n[a\n")
    with pytest.raises(ValueError, match=r"\.dockerignore:2: malformed"):
        list_context(folder)


def test_links_are_found_inside_only(folder, tmp_path):
    (tmp_path / "outside").write_text("secret")
    (folder / "in").symlink_to("sub/deep")
    (folder / "abs").symlink_to("/sub/c.txt")
    (folder / "out").symlink_to("../outside")
    (folder / "loop").symlink_to("loop")
    context = list_context(folder)
    assert context.find("in/d.txt").path == "sub/deep/d.txt"
    assert context.find("/abs").path == "sub/c.txt"
    assert context.find("../../a.txt").path == "a.txt"
    assert context.find("out") is None
    assert context.find("loop") is None
    assert context.find(".").path == "."
    assert context.entries["out"].target == "../outside"


def test_folders_without_end(folder):
    deep = folder
    for _ in range(300):
        deep /= "d"
    deep.mkdir(parents=True)
    with pytest.raises(ValueError, match="nested deeper"):
        list_context(folder)


def test_odd_files(folder):
    os.mkfifo(folder / "fifo")
    (folder / os.fsdecode(b"\xff\xfe")).write_text("x")
    entries = list_context(folder).entries
    assert entries["fifo"].kind == "fifo"
    assert os.fsdecode(b"\xff\xfe") in entries


def test_file_that_became_a_link_is_not_opened(folder, tmp_path):
    context = list_context(folder)
    (folder / "sub").rename(tmp_path / "moved")
    (folder / "sub").symlink_to(tmp_path / "moved")
    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to("b.py")
    for name in ("sub/c.txt", "a.txt"):
        with pytest.raises(OSError):
            context.open(context.entries[name])
    with os.fdopen(context.open(context.entries["b.py"])) as file:
        assert file.read() == "b.py"


@pytest.mark.parametrize(("text", "answer"), [("a*", True), ("a\\*", False), ("a[b]", True), ("ab", False)])
def test_has_wildcard(text, answer):
    assert has_wildcard(text) is answer
