"""One quick look at three files of each task."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.stages.survey import bases_of, has_licence, parsed_name, survey, task_name
from pytest_otval.task.source import FolderSource


@pytest.mark.parametrize(
    ("toml", "name"),
    [
        ('[task]\nname = "org/a"\n', "org/a"),
        ('schema_version = "1"\n[task] # the task\n# x\n  name="org/a" # y\n[agent]\nname = "b"\n', "org/a"),
        ("[task]\nname = 'org/a'\n", "org/a"),
        ('task.name = "org/a"\n', "org/a"),
        ('task = { name = "org/a" }\n', "org/a"),
        ('[ task ]\nname = "org/a"\n', "org/a"),
        ('["task"]\nname = "org/a"\n', "org/a"),
        ('[agent]\nname = "task"\n', ""),
        ('[metadata]\nname = "org/a"\ntask = "x"\n', ""),
        ("[task]\nname = 1\n", ""),
        ('[task]\n[task.authors]\nname = "x"\n', ""),
        ("= broken task", ""),
        ("\udcff".encode("utf-8", "surrogateescape").decode("latin-1"), ""),
    ],
)
def test_the_name_of_a_task(toml, name):
    assert task_name(toml.encode()) == name
    assert parsed_name(toml.encode()) == name


@given(st.binary(max_size=80) | st.text(alphabet='[]task.name="\n# ', max_size=80).map(str.encode))
def test_no_content_is_too_strange(content):
    task_name(content)
    list(bases_of(content, content))


@pytest.mark.parametrize(
    ("dockerfile", "bases"),
    [
        ("FROM debian:12\n", ["debian:12"]),
        ("ARG V=12\nFROM --platform=linux/amd64 debian:$V AS a\nFROM a\nfrom scratch\n", ["debian:12"]),
        ("FROM debian:${V:-11} as Base\nFROM base\nFROM node:20\n", ["debian:11", "node:20"]),
        ("# FROM x\nRUN echo FROM y\n", []),
        ("FROM $NOTHING\n", []),
    ],
)
def test_the_bases_of_a_dockerfile(dockerfile, bases):
    assert list(bases_of(b"", dockerfile.encode())) == bases


def test_a_prebuilt_image_is_the_base():
    toml = b'[environment]\ndocker_image = "org/x:1" # y\n'
    assert list(bases_of(toml, b"FROM debian\n")) == ["org/x:1"]


def test_nothing_but_regular_files_inside_tasks_is_read(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "Dockerfile").write_text("FROM secret\n")
    (tmp_path / "instruction.md").write_text("secret\n")
    for name in ("a", "b"):
        task = tmp_path / "data" / "tasks" / name
        task.mkdir(parents=True)
        os.mkfifo(task / "task.toml")
        (task / "instruction.md").symlink_to(tmp_path / "instruction.md")
        (task / "environment").symlink_to(outside)
    found = survey(FolderSource(tmp_path / "data"))
    assert (found.tasks, dict(found.instructions), dict(found.bases)) == (2, {}, {})


@pytest.mark.parametrize("name", ["LICENSE", "LICENCE.md", "COPYING", "UNLICENSE", "license.txt"])
def test_a_licence_beside_the_dataset_or_at_the_top_of_the_repository(tmp_path, name):
    dataset = tmp_path / "datasets" / "data"
    dataset.mkdir(parents=True)
    assert not has_licence(dataset, b"")
    (tmp_path / name).touch()
    assert has_licence(dataset, b"")


@pytest.mark.parametrize(("manifest", "there"), [(b'x = 1\nlicense = "MIT"\n', True), (b"# license = 1\n", False)])
def test_a_licence_that_dataset_toml_names(tmp_path, manifest, there):
    assert has_licence(tmp_path / "a" / "b" / "c", manifest) is there
