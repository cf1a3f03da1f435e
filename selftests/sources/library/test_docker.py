"""Patches of Dockerfiles, and of what they copy."""

import subprocess

import pytest

from pytest_otval.sources import library
from pytest_otval.sources.dockerfiles import DOCKERFILE
from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.library.docker import prune
from pytest_otval.sources.patches import apply
from selftests.checks.conftest import SOUND, write_task

TEST = SOUND["tests/test_outputs.py"]


@pytest.fixture
def task(tmp_path):
    def made(*lines, **edits):
        write_task(tmp_path / "task", {DOCKERFILE: "\n".join(["FROM debian:12", *lines, ""]), **edits})
        return TaskEditor(tmp_path / "task", "data")

    return made


def after(editor, patch):
    outcome = apply(editor, [patch])
    assert outcome.trouble == []
    return editor.text(DOCKERFILE).removeprefix("FROM debian:12\n")


@pytest.mark.parametrize(
    ("copies", "left"),
    [
        ("COPY test_outputs.py /app/", ""),
        ("COPY --chown=1:1 a.py test_outputs.py b.py /app/", "COPY --chown=1:1 a.py b.py /app/\n"),
        ("COPY a.py \\\n  # these\n  test_outputs.py \\\n  /app/", "COPY a.py /app/\n"),
        ('COPY ["a.py", "test_outputs.py", "/my app/"]', 'COPY ["a.py", "/my app/"]\n'),
        ("COPY . /app", "COPY . /app\n"),
    ],
)
def test_the_copy_of_a_test_goes_and_the_rest_stays(task, copies, left):
    editor = task(copies, **{"environment/test_outputs.py": TEST, "environment/a.py": "", "environment/b.py": ""})
    assert after(editor, library.tests_out_of_image()) == left
    assert not editor.has("environment/test_outputs.py")
    assert editor.has("environment/a.py")
    assert editor.text("tests/test_outputs.py") == TEST


def test_a_folder_that_is_empty_then_goes_with_its_copy(task):
    editor = task("COPY tests/ /app/tests/", "RUN true", **{"environment/tests/test_outputs.py": TEST})
    assert after(editor, library.tests_out_of_image()) == "RUN true\n"
    assert not (editor.folder / "environment" / "tests").exists()


@pytest.fixture
def repository(tmp_path):
    """A repository that is at its second commit of three, with a tag on each, as after a clone."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    origin.mkdir()

    def git(*words, cwd=clone):
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words]
        return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q", "-b", "main", cwd=origin)
    for number in (1, 2, 3):
        (origin / "file").write_text(f"{number}\n")
        git("add", ".", cwd=origin)
        git("commit", "-q", "-m", f"commit {number}", cwd=origin)
        git("tag", "-a", "-m", "", f"v{number}", cwd=origin)
    git("clone", "-q", str(origin), str(clone), cwd=tmp_path)
    git("fetch", "-q", "origin", "v3")
    return git


@pytest.mark.parametrize("way", [("checkout", "-q", "v2"), ("reset", "-q", "--hard", "v2")])
def test_later_commits_are_gone_and_earlier_ones_stay(repository, tmp_path, way):
    git = repository
    fix = git("rev-parse", "v3^{commit}")
    git(*way)
    run = prune(str(tmp_path / "clone")).removeprefix("RUN ")
    for _ in range(2):
        subprocess.run(["sh", "-ec", run], check=True)
        with pytest.raises(subprocess.CalledProcessError):
            git("cat-file", "-e", fix)
        assert git("tag") == "v1\nv2"
        assert git("log", "--format=%s") == "commit 2\ncommit 1"
        assert git("remote") == ""
        assert git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("before", "later"),
    [
        ("RUN DEBIAN_FRONTEND=noninteractive apt-get install -y git", "RUN apt-get update && DEBIAN_FRONTEND="),
        (
            "RUN cd / && \\\n    # tools\n    apt-get install -y git",
            "RUN cd / && \\\n    # tools\n    apt-get update && apt",
        ),
    ],
)
def test_lists_come_in_front_of_the_whole_command(task, before, later):
    assert after(task(before), library.package_lists()).startswith(later)


def test_every_installation_says_yes(task):
    lines = "RUN apt-get update && apt-get install git && apt-get install -y vim\nRUN apt-get install \\\n  curl"
    assert after(task(lines), library.apt_says_yes()) == (
        "RUN apt-get update && apt-get install -y git && apt-get install -y vim\nRUN apt-get install -y \\\n  curl\n"
    )


@pytest.mark.parametrize(
    ("before", "later"),
    [
        ("RUN pip install a>=1.2 b==1 'c<3' && echo a >2", "RUN pip install 'a>=1.2' b==1 'c<3' && echo a >2"),
        ('RUN pip install a[x]>=1,<2 "d>1"', "RUN pip install 'a[x]>=1,<2' \"d>1\""),
        ("RUN pip install a<2 || true", "RUN pip install 'a<2' || true"),
    ],
)
def test_bounds_get_quotes_and_other_redirects_none(task, before, later):
    assert after(task(before), library.quoted_versions()) == f"{later}\n"


def test_errors_of_a_build_are_shown(task):
    editor = task("RUN pip install a==1 || true; \\\n    # more\n    (make || echo no) && (rm x || true)")
    assert after(editor, library.build_errors_shown()) == (
        "RUN pip install a==1; \\\n    # more\n    (make) && (rm x || true)\n"
    )


def test_a_file_that_a_build_calls_may_be_called(task):
    editor = task("COPY make.sh /opt/", "RUN /opt/make.sh", **{"environment/make.sh": ("0644", "#!/bin/sh\ntrue\n")})
    apply(editor, [library.run_bits()])
    assert editor.is_executable("environment/make.sh")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["RUN apt-get install git\r"], "carriage returns"),
        (["# escape=`", "RUN apt-get install git"], ""),
        (["RUN eval 'apt-get install git' && apt-get install $X \\", ""], ""),
    ],
)
def test_what_is_not_understood_is_refused(task, lines, words):
    editor = task(*lines)
    outcome = apply(editor, [library.apt_says_yes(), library.package_lists()])
    assert words in " ".join(outcome.trouble)


def test_a_dockerfile_that_is_a_link_is_not_touched(task, tmp_path):
    (tmp_path / "outside").write_text("FROM debian\nRUN apt-get install git\n")
    editor = task(**{DOCKERFILE: ("link", str(tmp_path / "outside"))})
    outcome = apply(editor, [library.apt_says_yes(), library.pinned_bases({"debian": "debian:12"})])
    assert outcome.applied == []
    assert (tmp_path / "outside").read_text() == "FROM debian\nRUN apt-get install git\n"
