"""Pinned repositories of others, cloned from real repositories on this machine."""

import subprocess
from pathlib import Path

import pytest

import pytest_otval
from pytest_otval.__main__ import main
from pytest_otval.core import OtvalUsageError
from pytest_otval.sources.upstream import load_pins
from pytest_otval.sources.upstream_command import run_upstream


def git(folder, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Upstream:
    """A repository, the pins that name it, and the command over a workspace."""

    def __init__(self, folder, capsys):
        self.folder, self.capsys = folder / "repository", capsys
        self.workspace, self.pins = folder / "workspace", folder / "pins.toml"
        self.clone = self.workspace / "upstream/bugs"
        self.folder.mkdir()
        self.workspace.mkdir()
        git(self.folder, "init", "-q")
        git(self.folder, "config", "uploadpack.allowAnySHA1InWant", "true")
        self.commit("one")
        self.pin()

    def commit(self, content):
        (self.folder / "data.txt").write_text(content)
        (self.folder / ".gitignore").write_text("*.log\n")
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-qm", content)

    def pin(self, **changes):
        commit, tree = git(self.folder, "rev-parse", "HEAD", "HEAD^{tree}").split()
        values = {"url": f"file://{self.folder}", "commit": commit, "tree": tree, "licence": "x", **changes}
        self.pins.write_text("[bugs]\n" + "".join(f'{key} = "{value}"\n' for key, value in values.items()))

    def run(self, command, *names):
        status = run_upstream(command, list(names), self.pins, self.workspace)
        return status, self.capsys.readouterr().out


@pytest.fixture
def upstream(tmp_path, capsys):
    return Upstream(tmp_path, capsys)


def test_what_is_pinned_is_cloned_and_used_without_its_origin(upstream):
    assert upstream.run("status")[0] == 1
    status, said = upstream.run("setup")
    assert (status, said.split()[:2]) == (0, ["bugs:", "cloned"])
    upstream.folder.rename(upstream.folder.with_name("gone"))
    assert upstream.run("status") == (0, f"bugs: as pinned, {upstream.clone}\n")
    assert upstream.run("setup", "bugs")[0] == 0
    assert (upstream.clone / "data.txt").read_text() == "one"


def test_a_moved_upstream_is_told_and_not_followed(upstream):
    upstream.run("setup")
    assert upstream.run("update") == (0, "bugs: as pinned, and upstream has nothing newer\n")
    upstream.commit("two")
    status, said = upstream.run("update")
    assert status == 0
    assert f"moved on to {git(upstream.folder, 'rev-parse', 'HEAD')[:12]}, which is not followed" in said
    assert (upstream.clone / "data.txt").read_text() == "one"


def test_a_new_pin_is_brought_by_update_alone(upstream):
    upstream.run("setup")
    upstream.commit("two")
    upstream.pin()
    status, said = upstream.run("setup")
    assert status == 1 and "pinned is" in said and "upstream update bugs" in said
    assert upstream.run("update")[0] == 0
    assert (upstream.clone / "data.txt").read_text() == "two"


CHANGES = {
    "changed": lambda clone: (clone / "data.txt").write_text("other"),
    "removed": lambda clone: (clone / "data.txt").unlink(),
    "added": lambda clone: (clone / "new.txt").write_text("x"),
    "ignored": lambda clone: (clone / "new.log").write_text("x"),
    "no repository": lambda clone: subprocess.run(["rm", "-rf", str(clone / ".git")], check=True),
    "damaged": lambda clone: (clone / ".git/HEAD").write_text("x"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_clone_is_noticed_and_brought_anew(upstream, change):
    upstream.run("setup")
    CHANGES[change](upstream.clone)
    status, said = upstream.run("status")
    assert status == 1 and "upstream update bugs" in said and said.count("\n") == 1
    assert upstream.run("update")[0] == 0
    assert upstream.run("status")[0] == 0


def test_another_tree_than_the_pinned_one_is_not_taken(upstream):
    upstream.pin(tree="0" * 40)
    status, said = upstream.run("setup")
    assert status == 1 and "is not the pinned 000000000000" in said
    assert list((upstream.workspace / "upstream").iterdir()) == []


def test_a_commit_that_cannot_be_had_is_one_line(upstream):
    upstream.pin(commit="1" * 40)
    status, said = upstream.run("setup")
    assert status == 1 and said.startswith("bugs: git fetch: ") and said.count("\n") == 1
    upstream.pin(url=f"file://{upstream.folder}/absent")
    assert upstream.run("update")[0] == 1
    assert list((upstream.workspace / "upstream").iterdir()) == []


def test_hooks_and_attributes_of_a_clone_run_nothing(upstream, tmp_path):
    (upstream.folder / ".gitattributes").write_text("data.txt filter=evil\n")
    upstream.commit("two")
    upstream.pin()
    upstream.run("setup")
    mark = tmp_path / "ran"
    for hook in ("post-checkout", "post-index-change", "fsmonitor-watchman"):
        place = upstream.clone / ".git/hooks" / hook
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"#!/bin/sh\ntouch {mark}\n")
        place.chmod(0o755)
    git(upstream.clone, "config", "core.fsmonitor", f"touch {mark}")
    upstream.run("status")
    assert not mark.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[a]\n", "url: Field required"),
        ("[a", "pins.toml: "),
        ('[a]\nurl = "ext::sh -c id"\ncommit = "x"\ntree = "x"\nlicence = ""\n', "url: "),
    ],
)
def test_wrong_pins_are_wrong_usage(upstream, content, said):
    upstream.pins.write_text(content)
    with pytest.raises(OtvalUsageError, match=said):
        upstream.run("status")


def test_an_unknown_name_is_wrong_usage(upstream):
    with pytest.raises(OtvalUsageError, match="no upstream is called 'bug': there are bugs"):
        upstream.run("status", "bug")


def test_the_packages_own_pins_are_whole():
    pins = load_pins(Path(pytest_otval.__file__).parent / "data/upstream.toml")
    assert {"bugsinpy", "terminal-bench-datasets"} <= set(pins)


def test_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("OT_WORKSPACE", str(tmp_path))
    assert main(["upstream", "status", "bugsinpy"]) == 1
    assert "bugsinpy: is not there: run `python -m pytest_otval upstream" in capsys.readouterr().out
    assert main(["upstream", "status", "none"]) == 4
