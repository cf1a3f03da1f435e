"""What a build asks of its container; the container itself is not real."""

import gzip
import io
import tarfile
from contextlib import contextmanager

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images import result, unpacking
from pytest_otval.images.build import Builder
from pytest_otval.images.plan import dockerfile_plan
from pytest_otval.profile import BuildSection
from pytest_otval.sandbox.base import Limits, NoStartError

FROM = "FROM debian:12\n"


@pytest.fixture
def build(environment, bases, fake_sandbox, tmp_path):
    def run(dockerfile, files=None, site=None, log=None):
        plan = dockerfile_plan(environment(dockerfile, files), bases, all_root=False)
        builder = Builder(fake_sandbox, site or BuildSection(), tmp_path)
        return builder.build(
            plan, (tmp_path / "base.sqfs",), tmp_path / "out.sqfs", 60.0, Limits(memory_mb=5), None, log
        )

    return run


def unpacked(sandbox):
    """Destination folder, owner, mode of new folders and tar's flags of each copy."""
    return [[*argv[5:8], argv[-3]] for argv in sandbox.argvs() if "copy-" in str(argv)]


def test_steps_share_a_container_and_packing_has_its_own(build, fake_sandbox):
    build(FROM + "RUN a\nRUN b\n")
    steps, packing = fake_sandbox.specs
    assert (steps.for_build, steps.network, steps.limits.memory_mb) == (True, "public", 5)
    assert (packing.network, packing.overlay) == ("none", steps.overlay)
    assert [argv[-1] for argv in fake_sandbox.argvs()][:2] == ["a", "b"]


def test_site_variables_yield_to_the_dockerfile(build, fake_sandbox, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "site")
    monkeypatch.setenv("HTTP_PROXY", "site")
    build(FROM + "ENV PIP_INDEX_URL=own\nRUN a\n", site=BuildSection(pass_env=("PIP_INDEX_URL", "HTTP_PROXY")))
    env = fake_sandbox.commands[0].env
    assert (env["PIP_INDEX_URL"], env["HTTP_PROXY"]) == ("own", "site")
    assert env["APT_CONFIG"] == "/.otval-build/apt.conf"
    assert "DEBIAN_FRONTEND" not in env


@pytest.mark.parametrize(("is_folder", "folder"), [(True, "/a/b"), (False, "/a")])
def test_what_the_image_has_decides_where_a_file_goes(build, fake_sandbox, is_folder, folder):
    fake_sandbox.answer = lambda argv: None if is_folder or argv[3] != unpacking._WHERE else ("exit", 1, "/a/b")
    build(FROM + "COPY f /a/b\n", {"f": "x"})
    assert unpacked(fake_sandbox)[-1] == [folder, "0:0", "755", "-xp"]


@pytest.mark.parametrize(("maps_uids", "flags"), [(True, "-xpz"), (False, "-xpzo")])
def test_owners_in_an_archive_are_dropped_where_they_cannot_be_mapped(build, fake_sandbox, tmp_path, maps_uids, flags):
    fake_sandbox.maps_uids = maps_uids
    out = io.BytesIO()
    tarfile.open(fileobj=out, mode="w").close()
    (tmp_path / "task" / "environment").mkdir(parents=True)
    header = tarfile.TarInfo("x").tobuf()
    (tmp_path / "task" / "environment" / "t.tgz").write_bytes(gzip.compress(header + out.getvalue()))
    build(FROM + "ADD t.tgz /d/\n")
    assert unpacked(fake_sandbox) == [["/d", "0:0", "755", flags]]


def test_owner_by_name(build, fake_sandbox):
    passwd = ("exit", 0, "app:x:70:71::/:/bin/sh\n")
    fake_sandbox.answer = lambda argv: passwd if argv[-1] == "/etc/passwd" else None
    build(FROM + "COPY --chown=app f /d/\n", {"f": "x"})
    assert unpacked(fake_sandbox) == [["/d", "70:71", "755", "-xp"]]


def test_owner_that_is_not_in_the_image(build):
    with pytest.raises(Conclusion, match="Dockerfile:2: --chown=app: the image has no user 'app'") as caught:
        build(FROM + "COPY --chown=app f /d/\n", {"f": "x"})
    assert caught.value.reason == "build-failed"


@pytest.mark.parametrize("word", ["/etc/passwd", "-d"])
def test_image_that_hangs_our_own_look_ends_at_the_limit(build, fake_sandbox, word):
    passwd = ("exit", 0, "app:x:70:71::/:/bin/sh\n")
    fake_sandbox.answer = lambda argv: ("timeout", None, "") if word in str(argv) else passwd
    with pytest.raises(Conclusion, match="Dockerfile:2: COPY: not built within 60 s") as caught:
        build(FROM + "COPY --chown=app f /d\n", {"f": "x"})
    assert caught.value.reason == "build-timeout"


@pytest.mark.parametrize(("full", "reason"), [(True, "host-disk-full"), (False, "build-failed")])
def test_full_disk(build, fake_sandbox, monkeypatch, full, reason):
    monkeypatch.setattr("pytest_otval.images.failures.nearly_full", lambda folder: full)
    fake_sandbox.answer = lambda argv: ("exit", 1, "No space left on device") if argv[-1] == "a" else None
    with pytest.raises(Conclusion) as caught:
        build(FROM + "RUN a\n")
    assert caught.value.reason == reason


def test_no_start(build, fake_sandbox, monkeypatch, tmp_path):
    @contextmanager
    def no_start(spec):
        raise NoStartError("FATAL: no")
        yield

    monkeypatch.setattr(fake_sandbox, "open", no_start)
    with pytest.raises(Conclusion, match="FATAL: no") as caught:
        build(FROM + "RUN a\n")
    assert caught.value.reason == "no-start"
    assert not list(tmp_path.glob("build-*"))


def test_socket_is_no_error_and_anything_else_is(build, fake_sandbox, tmp_path):
    words = ["tar: root/.gnupg/S.gpg-agent: unknown file type"]
    fake_sandbox.answer = lambda argv: ("exit", 1, "\n".join(words)) if argv[-1] == result._WHOLE else None
    build(FROM + "RUN a\n")
    (tmp_path / "out.sqfs").unlink()
    words.append("tar: x: Input/output error")
    with pytest.raises(Conclusion, match="Input/output error") as caught:
        build(FROM + "RUN a\n")
    assert caught.value.reason == "internal"


def test_log_has_what_each_step_said(build, fake_sandbox, tmp_path):
    fake_sandbox.answer = lambda argv: ("exit", 0, f"{argv[-1]} said\n") if argv[-1] in "ab" else None
    log = tmp_path / "evidence" / "build.txt"
    for _ in range(2):
        (tmp_path / "out.sqfs").unlink(missing_ok=True)
        build(FROM + "RUN a\nRUN b\n", log=log)
    once = "==> environment/Dockerfile:2: RUN a\na said\n==> environment/Dockerfile:3: RUN b\nb said\n"
    assert log.read_text() == once * 2


@pytest.mark.parametrize("ended", ["exit", "timeout"])
def test_log_ends_with_the_step_that_failed(build, fake_sandbox, tmp_path, ended):
    fake_sandbox.answer = lambda argv: (ended, 1, "words\n") if argv[-1] == "bad" else None
    with pytest.raises(Conclusion):
        build(FROM + "RUN bad\nRUN never\n", log=tmp_path / "build.txt")
    assert (tmp_path / "build.txt").read_text() == "==> environment/Dockerfile:2: RUN bad\nwords\n"


def test_log_of_nothing_is_not_made(build, fake_sandbox, monkeypatch, tmp_path):
    @contextmanager
    def refuse(spec):
        raise NoStartError("no")
        yield

    monkeypatch.setattr(fake_sandbox, "open", refuse)
    with pytest.raises(Conclusion):
        build(FROM + "RUN a\n", log=tmp_path / "evidence" / "build.txt")
    assert not (tmp_path / "evidence").exists()


def test_log_that_cannot_be_written_changes_nothing(build, tmp_path):
    (tmp_path / "file").write_text("")
    build(FROM + "RUN a\n", log=tmp_path / "file" / "build.txt")
    assert (tmp_path / "out.sqfs").exists()
