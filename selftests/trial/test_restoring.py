import io
import subprocess
import tarfile
from glob import escape
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_otval.core import Conclusion
from pytest_otval.trial.restoring import restoring_of
from selftests.runtimes.made import write_squashfs


@pytest.fixture(scope="module")
def restoring(tmp_path_factory):
    empty = (write_squashfs(tmp_path_factory.mktemp("image") / "i.sqfs", {"/etc/hostname": ""}),)

    def run(level, allowed=(), keep=(), files=empty):
        return restoring_of(level, files, allowed, keep)

    return run


def test_an_image_that_cannot_be_read():
    with pytest.raises(Conclusion, match="the image cannot be read") as caught:
        restoring_of("masked", (Path("/nowhere.sqfs"),), ["/app"], [])
    assert caught.value.reason == "no-start"


@pytest.mark.parametrize("level", ["none", "fresh"])
def test_levels_that_put_nothing_back(restoring, level):
    assert restoring(level) is None


def test_masked(restoring):
    found = restoring("masked", ["/app", "/usr/src/app", "/usr/src/app/deep", "/", "relative"], ["/opt/tool"])
    assert [name for name in ("usr", "etc", ".wh.opt", "app", "srv", "lib64") if found.restores(name)] == [
        "usr",
        "etc",
        ".wh.opt",
        "lib64",
    ]
    assert found.carried == ("/opt/tool", "/usr/src/app")


def test_pristine(restoring):
    found = restoring("pristine", ["/app", "/app/out", "/home/me/x", "/logs/artifacts"], ["/opt"])
    assert not any(map(found.restores, ("app", ".wh.app", "opt", "logs", "tests")))
    assert all(map(found.restores, ("usr", "srv", "home", "root")))
    assert found.carried == ("/home/me/x",)


def test_links_of_the_image_are_followed(restoring, tmp_path):
    files = (write_squashfs(tmp_path / "i.sqfs", {"/srv/real/x": ""}, {"/work": "/srv/real", "/app": "opt/app"}),)
    found = restoring("pristine", ["/work", "/app/new/file"], files=files)
    assert found.carried == ("/app/new/file", "/srv/real")
    assert found.restores("work")


def test_a_package_with_modules_of_other_names(restoring, tmp_path):
    site = "/usr/lib/python3/dist-packages"
    record = "yaml/__init__.py,,\n_yaml/__init__.py,,\n../../bin/x,,\nPyYAML-6.0.dist-info/RECORD,,\nevil.pth,,\n"
    files = (write_squashfs(tmp_path / "i.sqfs", {f"{site}/PyYAML-6.0.dist-info/RECORD": record}),)
    carried = restoring("masked", keep=["pkg:pyyaml"], files=files).carried
    names = {PurePosixPath(path).name for path in carried}
    assert {"yaml", "_yaml", "[pP][yY][yY][aA][mM][lL]"} <= names
    assert not names & {"..", "evil.pth"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(
        st.text(st.characters(exclude_characters="\0\n\r", exclude_categories=["Cs"]), min_size=1), min_size=1
    )
)
def test_words_are_taken_for_what_they_say(restoring, names):
    """Whatever a path holds, the shell sees one pattern that fits this path alone."""
    path = str(PurePosixPath("/opt", "x" + "/x".join(name.replace("/", "|") for name in names)))
    if ".." in PurePosixPath(path).parts:
        return
    found = restoring("masked", keep=[path])
    (words,) = found.removing[1:]
    assert [words] == found.collecting[1:]
    said = subprocess.run(["sh", "-c", f"printf '%s' {words}"], capture_output=True, check=True).stdout
    assert said.decode() == f".{escape(path)}"
    assert found._root_of(PurePosixPath(path, "deep")) == PurePosixPath(path)
    assert found._root_of(PurePosixPath("/opt")) is None


def test_a_record_that_no_installer_wrote(restoring, tmp_path):
    site = "/usr/lib/python3/dist-packages"
    files = {f"{site}/x-1.dist-info/RECORD": "a" * 200_000 + ",,\n\n,,\nother.py,,\n"}
    carried = restoring("masked", keep=["pkg:x"], files=(write_squashfs(tmp_path / "i.sqfs", files),)).carried
    assert f"{site}/other.py" in carried


def test_no_argument_of_a_script_is_longer_than_the_kernel_takes(restoring):
    found = restoring("masked", keep=[f"pkg:some-package-{number}" for number in range(100)])
    assert max(map(len, found.collecting)) < 128 * 1024
    assert sum(len(words.split()) for words in found.collecting[1:]) == len(found.carried)


def test_more_than_a_command_line_holds(restoring):
    found = restoring("masked", keep=[f"pkg:some-package-{number}" for number in range(1000)])
    with pytest.raises(Conclusion, match="keep: names too much"):
        assert found.collecting


def test_only_what_is_kept_comes_through(restoring, tmp_path):
    raw, target = tmp_path / "raw.tar", tmp_path / "clean.tar"
    with tarfile.open(raw, "w") as tar:
        for name in ("./opt/tool/a", "opt/other", "usr/bin/python3", "opt/tool/../../etc/passwd"):
            tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    restoring("masked", keep=["/opt/tool"]).clean(raw, target)
    with tarfile.open(target) as tar:
        assert tar.getnames() == ["opt/tool/a"]
    raw.write_bytes(b"no tar" * 500)
    with pytest.raises(Conclusion, match="is no archive"):
        restoring("masked", keep=["/opt/tool"]).clean(raw, target)
