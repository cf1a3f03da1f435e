"""Which base stands behind a name."""

import json

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images.bases import Bases, own_sources
from pytest_otval.images.bootstrap import recipe_digest
from pytest_otval.images.model import ImageConfig
from pytest_otval.images.registry import NoAnswerError, NotThereError, RegistryImage

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


def test_recipe_digest_knows_order_no_more_than_the_mirror(profile):
    recipe = profile.recipes["bookworm"]
    both = recipe.model_copy(update={"packages": ("a", "b")})
    assert recipe_digest(both) == recipe_digest(recipe.model_copy(update={"packages": ("b", "a", "a")}))
    assert recipe_digest(both) != recipe_digest(recipe)


def test_registry_comes_first_and_is_asked_once(tmp_path, profile):
    registry = OneImage()
    base = made(tmp_path, profile, registry).resolve("debian:12", "")
    again = made(tmp_path, profile, registry).resolve("docker.io/library/debian:12", "")
    assert base == again
    assert base.name == base.reference == f"docker.io/library/debian@{DIGEST}"
    assert base.config.env["A"] == "1"
    assert registry.asked == ["docker.io/library/debian:12"]
    assert list(json.loads((tmp_path / "tags.json").read_text())) == ["docker.io/library/debian:12"]


def test_broken_tags_file_is_no_tags_file(tmp_path, profile):
    (tmp_path / "tags.json").write_text("[")
    assert made(tmp_path, profile, OneImage()).resolve("a:1", "").config.cmd == ("c",)


def test_silent_registry_is_asked_once_in_a_process(tmp_path, profile):
    registry = OneImage(NoAnswerError("docker.io: timed out"))
    bases = made(tmp_path, profile, registry)
    for name in ("ubuntu:24.04", "python:3.12"):
        with pytest.raises(Conclusion, match="timed out; bootstrap has no such image") as caught:
            bases.resolve(name, "environment/Dockerfile:1: FROM")
        assert caught.value.reason == "base-unavailable"
        assert caught.value.headline.startswith(f"environment/Dockerfile:1: FROM {name}: ")
    assert len(registry.asked) == 1


def test_offline_asks_nobody(tmp_path, profile):
    registry = OneImage()
    with pytest.raises(Conclusion, match="offline"):
        made(tmp_path, profile, registry, offline=True).resolve("ubuntu:24.04", "")
    assert registry.asked == []


@pytest.mark.parametrize("name", ["ubuntu:nope", "{docker_image}"])
def test_what_cannot_exist_is_the_tasks_fault(tmp_path, profile, name):
    with pytest.raises(Conclusion) as caught:
        made(tmp_path, profile, OneImage(NotThereError("no such tag"))).resolve(name, "")
    assert caught.value.reason == "build-failed"


def test_files_are_known_by_content(tmp_path, bases):
    (tmp_path / "a.sif").write_bytes(b"x")
    (tmp_path / "b.sqfs").write_bytes(b"x")
    assert bases.file(tmp_path / "a.sif", "").name == bases.file(tmp_path / "b.sqfs", "").name
    with pytest.raises(Conclusion, match="No such file") as caught:
        bases.file(tmp_path / "none.sif", "docker_image")
    assert caught.value.reason == "base-unavailable"
