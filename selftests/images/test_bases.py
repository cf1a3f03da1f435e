"""Which base stands behind a name or a file."""

import os

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images.bases import Bases, own_sources
from pytest_otval.images.bootstrap import recipe_digest
from pytest_otval.images.model import ImageConfig
from pytest_otval.images.oci import NoAnswerError, NotThereError, RefusedError
from pytest_otval.images.registry import RegistryImage
from selftests.images.oci_registry import TinyImage, digest_of, layer

DIGEST = "sha256:" + "12" * 32


class OneImage:
    def __init__(self, error=None):
        self.asked = []
        self.error = error

    def resolve(self, reference):
        self.asked.append(str(reference))
        if self.error:
            raise self.error
        return RegistryImage(DIGEST, ImageConfig(env={"PATH": "/x", "A": "1"}, cmd=("c",)))


def made(store, profile, registry, offline=False):
    return Bases(profile, own_sources(store, profile, offline, registry))


def test_recipe_stands_in_where_no_registry_answers(bases, profile):
    base = bases.resolve("debian:12", "D:1: FROM")
    assert base.name == f"bootstrap:bookworm@{recipe_digest(profile.recipes['bookworm'])[:12]}"
    assert bases.resolve("debian:bookworm", "D:1: FROM") == base
    assert base.needs_network


def test_recipe_digest_knows_order_no_more_than_the_mirror(profile):
    recipe = profile.recipes["bookworm"]
    both = recipe.model_copy(update={"packages": ("a", "b")})
    assert recipe_digest(both) == recipe_digest(recipe.model_copy(update={"packages": ("b", "a", "a")}))
    assert recipe_digest(both) != recipe_digest(recipe)
    assert recipe_digest(recipe.model_copy(update={"remove": ("/x",)})) != recipe_digest(recipe)


def test_registry_comes_first_and_is_asked_once(tmp_path, profile):
    registry = OneImage()
    base = made(tmp_path, profile, registry).resolve("debian:12", "")
    again = made(tmp_path, profile, registry).resolve("docker.io/library/debian:12", "")
    assert base == again
    assert base.name == base.reference == f"docker.io/library/debian@{DIGEST}"
    assert base.config.env["A"] == "1"
    assert base.needs_network
    assert registry.asked == ["docker.io/library/debian:12"]


def test_digest_beats_the_tag(tmp_path, profile):
    registry = OneImage()
    bases = made(tmp_path, profile, registry)
    pinned = "sha256:" + "34" * 32
    names = [f"debian:12@{pinned}", f"debian@{pinned}", f"docker.io/library/debian:13@{pinned}"]
    assert len({bases.resolve(name, "").name for name in names}) == 1
    assert registry.asked == [f"docker.io/library/debian@{pinned}"]


def test_silent_registry(tmp_path, profile):
    bases = made(tmp_path, profile, OneImage(NoAnswerError("docker.io: timed out")))
    with pytest.raises(Conclusion, match="timed out; bootstrap has no such image") as caught:
        bases.resolve("ubuntu:24.04", "environment/Dockerfile:1: FROM")
    assert caught.value.reason == "base-unavailable"
    assert caught.value.headline.startswith("environment/Dockerfile:1: FROM ubuntu:24.04: ")


def test_foreign_architecture_is_no_fault_of_the_task(tmp_path, profile):
    with pytest.raises(Conclusion, match="only for linux/s390x") as caught:
        made(tmp_path, profile, OneImage(RefusedError("only for linux/s390x"))).resolve("ubuntu:1", "")
    assert caught.value.reason == "base-unavailable"


def test_offline_asks_nobody(tmp_path, profile):
    registry = OneImage()
    with pytest.raises(Conclusion, match="offline"):
        made(tmp_path, profile, registry, offline=True).resolve("ubuntu:24.04", "")
    assert registry.asked == []
    made(tmp_path, profile, registry).resolve("ubuntu:24.04", "")
    assert made(tmp_path, profile, OneImage(NoAnswerError("no")), offline=True).resolve("ubuntu:24.04", "")


@pytest.mark.parametrize("name", ["ubuntu:nope", "{docker_image}", "docker://ubuntu", "oci-archive:/x.tar"])
def test_what_cannot_exist_is_the_tasks_fault(tmp_path, profile, name):
    with pytest.raises(Conclusion) as caught:
        made(tmp_path, profile, OneImage(NotThereError("no such tag"))).resolve(name, "")
    assert caught.value.reason == "build-failed"


@pytest.fixture
def task(tmp_path):
    folder = tmp_path / "tasks" / "task"
    folder.mkdir(parents=True)
    return folder


def test_docker_image_by_name(tmp_path, profile, task):
    bases = made(tmp_path, profile, OneImage())
    assert bases.docker_image("docker://debian:12", task) == bases.docker_image("debian:12", task)


def test_files_are_known_by_content(bases, task):
    (task / "a.sif").write_bytes(b"x")
    (task / "images").mkdir()
    (task / "images/b.sqfs").write_bytes(b"x")
    (task / "link.sif").symlink_to("images/b.sqfs")
    found = [bases.docker_image(name, task) for name in ("a.sif", "images/b.sqfs", f"{task}/a.sif", "link.sif")]
    assert len({base.name for base in found}) == 1
    assert found[3].file == task / "images/b.sqfs"
    assert not found[0].needs_network


@pytest.mark.parametrize("scheme", ["oci-archive:", "docker-archive:"])
def test_archives_are_known_by_their_image(bases, task, scheme):
    image = TinyImage({"WorkingDir": "/app", "User": "7"}, [layer({"a": b"1"})])
    (task / "one.tar").write_bytes(image.oci_archive())
    (task / "other@2.tar").write_bytes(image.oci_archive("./"))
    one, other = (bases.docker_image(f"{scheme}{name}", task) for name in ("one.tar", "other@2.tar"))
    assert one.name == other.name == f"archive@{digest_of(image.manifest)}"
    assert (one.config.workdir, one.config.user) == ("/app", "7")
    assert one.reference == f"oci-archive:{task}/one.tar@{digest_of(image.manifest)}"
    assert not one.needs_network
    (task / "saved.tar").write_bytes(image.docker_archive())
    assert bases.docker_image(f"{scheme}saved.tar", task).name == f"archive@{digest_of(image.config_bytes)}"


@pytest.mark.parametrize("form", ["{}.sif", "{}.sqfs", "oci-archive:{}", "docker-archive:{}"])
@pytest.mark.parametrize("where", ["none", "../outside", "link", "folder", "fifo", "a\0b", "\x1b[2J"])
def test_files_that_are_none(bases, task, form, where):
    suffix = form.partition("}")[2]
    (task.parent / f"outside{suffix}").write_bytes(b"x")
    (task / f"link{suffix}").symlink_to(task.parent / f"outside{suffix}")
    (task / f"folder{suffix}").mkdir()
    os.mkfifo(task / f"fifo{suffix}")
    with pytest.raises(Conclusion) as caught:
        bases.docker_image(form.format(where), task)
    assert caught.value.reason == "bad-task"
    assert caught.value.headline.isprintable()


def test_absolute_path_that_leads_nowhere_is_the_machines(bases, task):
    for name in ("/none/x.sif", "oci-archive:/none/x.tar"):
        with pytest.raises(Conclusion, match="No such file") as caught:
            bases.docker_image(name, task)
        assert caught.value.reason == "base-unavailable"


def test_archive_that_is_none(bases, task):
    (task / "x.tar").write_bytes(b"x" * 1024)
    with pytest.raises(Conclusion, match=r"docker_image oci-archive:x.tar: it is damaged") as caught:
        bases.docker_image("oci-archive:x.tar", task)
    assert caught.value.reason == "bad-task"
