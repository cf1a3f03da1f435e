"""Real builds, on the toolbox as the base: a busybox and nothing else."""

import os
from pathlib import Path

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images.bases import Base
from pytest_otval.images.model import ImageConfig, ImageRequest
from pytest_otval.images.store import Images
from pytest_otval.profile import BuildSection, Profile
from selftests.images.merged import merged

pytestmark = pytest.mark.integration

SUB = {"sub/lib64/x": "x", "a": "a"}
FROM = 'FROM tiny\nSHELL ["/sh", "-ec"]\nENV PATH=/.otval\n'


@pytest.fixture
def build(machine, environment, tmp_path):
    sandbox, toolbox, scratch = machine
    site = tmp_path / "site.conf"
    site.write_text("site\n")
    certificates = tmp_path / "certificates"
    certificates.mkdir()
    (certificates / "ours").write_text("site\n")
    profile = Profile(name="x", build=BuildSection(bind_files=(str(site), str(certificates)), pass_env=("SITE_VAR",)))

    def make(dockerfile, files=None, seconds=60.0):
        images = Images(tmp_path / "store", sandbox, profile, scratch.folder, tmp_path / "run", offline=True)
        images._bases.resolve = lambda name, where: Base("tiny@1", ImageConfig(), file=toolbox)
        return images.ensure(ImageRequest(environment(dockerfile, files), None, seconds))

    return make


def read(image, path):
    return merged(image.files)[f"/{path}"].content.decode()


def test_instructions(build):
    image = build(
        FROM + "ARG X=1\nWORKDIR /app\nRUN echo $X $PWD $HOME > out\nCOPY a.txt .\nCOPY a.txt new\nCOPY sub /d/\n"
        "COPY a.txt /app\nCOPY --chmod=0600 a.txt /secret\nCOPY <<E /text\n$X\nE\nRUN rm /app/a.txt && mkdir /empty\n"
        "RUN <<E\n#!/sh\necho script > /script\nE\n",
        {"a.txt": "a", "sub/deep/b": "b"},
    )
    assert read(image, "app/out") == "1 /app /root\n"
    assert read(image, "app/new") == "a"
    assert (read(image, "d/deep/b"), read(image, "text"), read(image, "script")) == ("b", "1\n", "script\n")
    found = merged(image.files)
    assert found["/secret"].mode == 0o600
    assert "/empty" in found
    assert "/app/a.txt" not in found
    assert not {"/.otval", "/.otval-build", "/.singularity.d"} & set(found)
    assert not [path for path in found if path.startswith(("/proc/", "/sys/", "/dev/"))]
    assert {"/proc", "/sys", "/dev"} <= set(found)
    assert not {"/etc/resolv.conf", "/etc/hostname"} & set(found)


def test_copy_through_a_link_keeps_the_link(build):
    found = merged(
        build(FROM + "RUN mkdir /usr && ln -s usr /lib64\nCOPY sub/lib64 /lib64\nCOPY a /lib64/\n", SUB).files
    )
    assert found["/lib64"].kind == "link"
    assert {"/usr/x", "/usr/a"} <= set(found)


def test_folder_over_a_link_is_refused(build):
    with pytest.raises(Conclusion, match=r"environment/Dockerfile:5: .*lib64 is no folder") as caught:
        build(FROM + "RUN mkdir /usr && ln -s usr /lib64\nCOPY sub /\n", SUB)
    assert caught.value.reason == "build-failed"


def test_owners(build, machine):
    if not machine[0].maps_uids:
        pytest.skip("owners cannot be mapped here")
    image = build(
        FROM + "RUN echo app:x:70:71::/home/app:/sh > /etc/passwd; chown -h 5:6 /sh; chmod 1777 /tmp\n"
        "COPY --chown=app a /x/y/\nUSER app\nRUN id -u > /tmp/id; echo $HOME >> /tmp/id\n",
        {"a": "a"},
    )
    found = merged(image.files)
    assert found["/x"].owner == found["/x/y"].owner == found["/x/y/a"].owner == (70, 71)
    assert found["/sh"].owner == (5, 6)
    assert read(image, "tmp/id") == "70\n/home/app\n"


def test_site_files_are_seen_and_not_packed(build, tmp_path, monkeypatch):
    monkeypatch.setenv("SITE_VAR", "value")
    conf, certificates = tmp_path / "site.conf", tmp_path / "certificates"
    image = build(
        FROM + f"RUN cat {conf} > /seen; echo $SITE_VAR >> /seen; cat {certificates}/ours >> /seen\n"
        f"RUN echo no > {conf}; mkdir {certificates}/sub; echo new > {certificates}/sub/mine\n"
    )
    assert read(image, "seen") == "site\nvalue\nsite\n"
    found = merged(image.files)
    assert str(conf) not in found
    assert f"{certificates}/sub/mine" in found
    assert f"{certificates}/ours" not in found
    assert (conf.read_text(), [path.name for path in certificates.iterdir()]) == ("site\n", ["ours"])


def test_failure_names_its_line(build):
    with pytest.raises(Conclusion) as caught:
        build(FROM + "RUN true\nRUN echo oops; exit 7\n")
    assert caught.value.reason == "build-failed"
    assert caught.value.headline == "environment/Dockerfile:5: RUN ended with status 7: oops"


def test_time_is_for_all_steps_together(build):
    with pytest.raises(Conclusion) as caught:
        build(FROM + "RUN true\nRUN sleep 60\n", seconds=5.0)
    assert caught.value.reason == "build-timeout"
    assert caught.value.headline.startswith("environment/Dockerfile:5: RUN: ")


def test_daemon_and_socket_are_no_obstacle(build):
    image = build(FROM + "RUN (while :; do echo x >> /grows; done) &\nRUN nc -l -p 1 -s 127.0.0.1 & sleep 0.1\n")
    assert "/grows" in merged(image.files)


def test_scratch_is_left_clean(build, machine):
    build(FROM + "RUN mkdir /locked && chmod 0 /locked\n")
    assert not [name for name in os.listdir(machine[2].folder) if name.startswith(("build-", "pull-"))]


def test_image_runs_as_a_base(build, machine, tmp_path):
    from pytest_otval.sandbox.base import Command, ContainerSpec

    image = build(FROM + "RUN echo hello > /greeting\n")
    log = Path(tmp_path / "log")
    with machine[0].open(ContainerSpec(image.files)) as container:
        assert container.run(Command(["/.otval/busybox", "cat", "/greeting"], log)).ok
    assert log.read_text() == "hello\n"
