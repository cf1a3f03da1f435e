"""Real images from a registry on loopback and from archives, down to a container that runs on them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images.bases import own_sources
from pytest_otval.images.model import ImageRequest
from pytest_otval.images.pulling import Puller
from pytest_otval.images.registry import Registry
from pytest_otval.images.store import Images
from pytest_otval.profile import Profile, RegistriesSection
from pytest_otval.sandbox.apptainer import ApptainerSandbox
from pytest_otval.sandbox.base import Command, ContainerSpec
from selftests.images.oci_registry import OciRegistry, TinyImage, layer

pytestmark = pytest.mark.integration

BUSYBOX = "/.otval/busybox"
CANARY = "canary-password"


@pytest.fixture(scope="module")
def image():
    """The second layer takes away a file and the contents of a folder, the third changes a file, one has an owner."""
    busybox = Path(shutil.which("busybox")).read_bytes()
    folders = dict.fromkeys(("bin", "etc", "tmp", "dir", "proc", "sys", "dev"))
    first = layer({**folders, "bin/busybox": busybox, "bin/sh": "busybox", "old": b"old", "dir/a": b"a"})
    second = layer({".wh.old": b"", "dir": None, "dir/.wh..wh..opq": b"", "dir/b": b"b", "new": b"1"})
    layers = [first, second, layer({"new": b"2"}), layer({"owned": b"3"}, mode=0o600, owner=(70, 71))]
    return TinyImage({"Env": ["WHO=image"], "WorkingDir": "/dir"}, layers)


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A registry that wants the log-in of the environment."""
    monkeypatch.setenv("APPTAINER_CONFIGDIR", str(tmp_path / "none"))
    monkeypatch.setenv("APPTAINER_DOCKER_USERNAME", "me")
    monkeypatch.setenv("APPTAINER_DOCKER_PASSWORD", CANARY)
    with OciRegistry("bearer", ("me", CANARY)) as registry:
        yield registry


@pytest.fixture
def images(machine, server, tmp_path):
    """Make what another run makes over the same store."""
    sandbox, _, scratch = machine
    section = RegistriesSection(plain_http=(server.host,), login=(server.host,))
    profile = Profile(name="x", registries=section, image_sources=("registry",))

    def make(offline=False):
        store, registry = tmp_path / "store", Registry.of(profile)
        puller = Puller(registry, sandbox, scratch.folder, tmp_path, 1)
        sources = own_sources(store, profile, offline, registry)[:1]
        return Images(
            store, sandbox, profile, scratch.folder, tmp_path / "run", offline=offline, sources=sources, pull=puller
        )

    return make


def said(machine, image, script, tmp_path):
    log = tmp_path / "log"
    with machine[0].open(ContainerSpec(image.files)) as container:
        assert container.run(Command(["/bin/sh", "-c", script], log)).ok
    return log.read_text()


def test_from_a_tag_to_a_container(images, machine, server, image, tmp_path):
    name = server.push(image)
    server.fail("/blobs/", "cut", times=1)
    asked = ImageRequest(None, name, 60.0)
    first = images().ensure(asked)
    assert first.base == f"{server.host}/lib/app@{image.digest}"
    assert (first.config.env["WHO"], first.config.workdir) == ("image", "/dir")
    script = f"{BUSYBOX} cat /new; {BUSYBOX} ls /dir; {BUSYBOX} stat -c %a:%u:%g /owned; [ ! -e /old ]"
    owner = "70:71" if machine[0].maps_uids else "0:0"
    assert said(machine, first, script, tmp_path) == f"2b\n600:{owner}\n"

    requests = len(server.seen)
    assert images().ensure(asked) == first
    assert len(server.seen) == requests, "the second time nobody is asked"
    server.stop()
    assert images().ensure(asked) == first
    assert images(offline=True).ensure(asked) == first
    assert [path.name for path in machine[2].folder.iterdir() if path.name.startswith("pull-")] == []


def test_password_is_written_nowhere(images, machine, server, image, tmp_path, monkeypatch):
    name = server.push(image)
    build, seen = ApptainerSandbox._build_from, []

    def watched(*arguments):
        lines = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        seen.append(lines)
        build(*arguments)

    monkeypatch.setattr(ApptainerSandbox, "_build_from", watched)
    image = images().ensure(ImageRequest(None, name, 60.0), tmp_path / "build.txt")
    assert "=" in said(machine, image, f"{BUSYBOX} env", tmp_path), "what a container sees is in a file here"
    monkeypatch.setenv("APPTAINER_DOCKER_PASSWORD", f"wrong-{CANARY}")
    with pytest.raises(Conclusion) as caught:
        images().ensure(ImageRequest(None, f"{server.host}/lib/app:2", 60.0))
    assert caught.value.reason == "base-unavailable"
    assert any("Basic" in one for one in server.shown), "it was used"
    places = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(seen) == 1
    assert not [path for path in places if CANARY.encode() in path.read_bytes()]
    assert CANARY not in seen[0] + str(caught.value)


def test_registry_that_goes_away_before_the_pull(images, server, image):
    asked = ImageRequest(None, server.push(image), 60.0)
    images().plan(asked)
    server.stop()
    with pytest.raises(Conclusion, match="cannot be pulled") as caught:
        images().ensure(asked)
    assert caught.value.reason == "network-unreachable"


@pytest.mark.parametrize("form", ["oci_archive", "docker_archive"])
def test_from_an_archive_to_a_container(images, machine, server, image, tmp_path, form):
    folder = tmp_path / "task" / "environment"
    folder.mkdir(parents=True)
    (folder.parent / "image.tar").write_bytes(getattr(image, form)())
    asked = ImageRequest(folder, "oci-archive:image.tar", 60.0)
    first = images(offline=True).ensure(asked)
    assert first.config.workdir == "/dir"
    assert said(machine, first, f"{BUSYBOX} cat /new; [ ! -e /old ] && {BUSYBOX} ls /dir", tmp_path) == "2b\n"
    assert images().ensure(asked) == first
    assert server.seen == []


def test_damaged_archive(images, image, tmp_path):
    folder = tmp_path / "task" / "environment"
    folder.mkdir(parents=True)
    image = TinyImage(image.config, [b"no tar"])
    (folder.parent / "image.tar").write_bytes(image.oci_archive())
    with pytest.raises(Conclusion) as caught:
        images().ensure(ImageRequest(folder, "oci-archive:image.tar", 60.0))
    assert caught.value.reason == "bad-task"
    assert "image.tar" in caught.value.headline
    assert "\n" not in caught.value.headline
