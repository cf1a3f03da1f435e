"""Versions that are fixed: nothing else of a file changes."""

import pytest

from pytest_otval.sources import library
from pytest_otval.sources.dockerfiles import DOCKERFILE
from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.patches import apply
from selftests.checks.conftest import SOUND, write_task

VERSIONS = {"requests": "2.32.4", "PyYAML": "6.0.2", "pytest": "8.4.1"}


@pytest.fixture
def task(tmp_path):
    def made(**edits):
        write_task(tmp_path / "task", edits)
        return TaskEditor(tmp_path / "task", "data")

    return made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pip install requests", "pip install requests==2.32.4"),
        ("pip3 install -q requests numpy", "pip3 install -q requests==2.32.4 numpy"),
        ("python3 -m pip install --no-cache-dir pyyaml", "python3 -m pip install --no-cache-dir pyyaml==6.0.2"),
        ("uv pip install --system 'requests[socks]>=2'", "uv pip install --system 'requests[socks]==2.32.4'"),
        ('timeout 60 pip install "PyYAML"', 'timeout 60 pip install "PyYAML==6.0.2"'),
        (
            "pip install \\\n    requests \\\n    # yaml\n    pyyaml",
            "pip install \\\n    requests==2.32.4 \\\n    # yaml\n    pyyaml==6.0.2",
        ),
        ("uv add pytest", "uv add pytest==8.4.1"),
        (
            "uvx -p 3.13 -w pytest -w requests==1 pytest /tests",
            "uvx -p 3.13 -w pytest==8.4.1 -w requests==1 pytest /tests",
        ),
        ("uv run --with pytest pytest", "uv run --with pytest==8.4.1 pytest"),
        (
            "apt-get install -y curl && pip install pytest; echo pytest",
            "apt-get install -y curl && pip install pytest==8.4.1; echo pytest",
        ),
    ],
)
def test_packages_are_pinned_where_they_stand(task, before, after):
    editor = task(**{DOCKERFILE: f"FROM python:3.12-slim\nRUN {before}\nWORKDIR /app\n"})
    outcome = apply(editor, [library.pinned_packages(VERSIONS)])
    assert (outcome.applied, outcome.trouble) == (["pinned-packages"], [])
    assert editor.text(DOCKERFILE) == f"FROM python:3.12-slim\nRUN {after}\nWORKDIR /app\n"


@pytest.mark.parametrize(
    "line",
    [
        "pip install requests==2.0",
        "pip install -r requests",
        "pip install ./requests",
        "pip install git+https://example.org/requests",
        "pip install 'requests @ https://example.org/r.zip'",
        "pip install requests~=2.1",
        "pip install $X",
        "echo pip install requests",
        "pip download requests",
        "apt-get install -y requests",
    ],
)
def test_what_is_pinned_or_is_none_stays(task, line):
    editor = task(**{DOCKERFILE: f"FROM python:3.12-slim\nRUN {line}\n"})
    assert apply(editor, [library.pinned_packages(VERSIONS)]).applied == []


def test_test_scripts_are_pinned_too(task):
    script = "#!/bin/bash\npip install pytest\nbash /tests/more.sh\n"
    editor = task(**{"tests/test.sh": script, "tests/more.sh": "#!/bin/bash\npip install -U requests\n"})
    assert apply(editor, [library.pinned_packages(VERSIONS)]).applied == ["pinned-packages"]
    assert "pip install pytest==8.4.1\n" in editor.text("tests/test.sh")
    assert "pip install -U requests==2.32.4\n" in editor.text("tests/more.sh")


def test_a_version_that_a_bound_forbids_is_refused(task):
    editor = task(**{DOCKERFILE: "FROM python:3.12-slim\nRUN pip install 'requests<2'\n"})
    assert "requests<2 does not allow requests 2.32.4" in apply(editor, [library.pinned_packages(VERSIONS)]).trouble[0]


def test_bases_are_pinned_where_they_are_named_without_a_version(task):
    dockerfile = (
        "FROM --platform=linux/amd64 ubuntu\nRUN echo ubuntu\nFROM ubuntu AS two\nFROM ubuntu:24.04 AS ubuntu-2\n"
        "COPY --from=ubuntu /etc/os-release /\nCOPY --from=two /ubuntu /\n"
    )
    toml = SOUND["task.toml"].replace("[environment]\n", '[environment]\ndocker_image = "ubuntu" # ours\n')
    editor = task(**{DOCKERFILE: dockerfile, "task.toml": toml})
    patch = library.pinned_bases({"ubuntu": "ubuntu:24.04@sha256:1"})
    assert apply(editor, [patch]).applied == ["pinned-bases"]
    pinned = dockerfile.replace("ubuntu\nRUN", "ubuntu:24.04@sha256:1\nRUN").replace(
        "FROM ubuntu AS", "FROM ubuntu:24.04@sha256:1 AS"
    )
    assert editor.text(DOCKERFILE) == pinned.replace("--from=ubuntu ", "--from=ubuntu:24.04@sha256:1 ")
    assert 'docker_image = "ubuntu:24.04@sha256:1" # ours' in editor.text("task.toml")


def test_a_stage_that_has_the_name_of_an_image_is_none(task):
    dockerfile = "FROM ubuntu:24.04 AS base\nFROM base\nCOPY --from=base /a /b\n"
    editor = task(**{DOCKERFILE: dockerfile})
    assert apply(editor, [library.pinned_bases({"base": "base:1"})]).applied == []
