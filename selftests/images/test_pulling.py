"""Pulling into a layout; converting is the runtime's and is replaced here."""

import json
import os
import subprocess
import threading
import time

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images.pulling import ARCHIVE, Puller
from pytest_otval.images.registry import Registry
from selftests.images.oci_registry import OciRegistry, TinyImage, digest_of, layer


@pytest.fixture
def image():
    return TinyImage({}, [layer({"a": b"one"})])


@pytest.fixture
def server():
    with OciRegistry() as registry:
        yield registry


class Converter:
    loses_owners = False

    def __init__(self, convert):
        self.convert = convert


def convert(layout, target):
    entry = json.loads((layout / "index.json").read_text())["manifests"][0]
    target.write_text(entry["digest"])


@pytest.fixture
def puller(tmp_path, server):
    def make(convert=convert, at_once=2):
        (tmp_path / "scratch").mkdir(exist_ok=True)
        registry = Registry(frozenset([server.host]), sleep=lambda seconds: None)
        return Puller(registry, Converter(convert), tmp_path / "scratch", tmp_path, at_once)

    return make


def test_registry(puller, server, image, tmp_path):
    server.push(image)
    puller()(f"{server.host}/lib/app@{image.digest}", tmp_path / "x.sif")
    assert (tmp_path / "x.sif").read_text() == digest_of(image.manifest)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_owners_that_the_runtime_would_lose(puller, server, image, tmp_path):
    server.push(image)

    class Unpacker:
        loses_owners = True

        def unpack(self, layout, target):
            target.mkdir()
            (target / "file").write_text("x")
            os.setxattr(target / "file", "user.rootlesscontainers", b"\x08\x46\x10\x47")

    pull = puller()
    pull._converter = Unpacker()
    pull(f"{server.host}/lib/app@{image.digest}", tmp_path / "x.sif")
    argv = ["unsquashfs", "-lln", tmp_path / "x.sif", "file"]
    assert " 70/71 " in subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert list((tmp_path / "scratch").iterdir()) == []


def test_archive(puller, image, tmp_path):
    (tmp_path / "a:b@c.tar").write_bytes(image.oci_archive())
    place = f"{ARCHIVE}{tmp_path}/a:b@c.tar"
    puller()(f"{place}@{digest_of(image.manifest)}", tmp_path / "x.sif")
    assert (tmp_path / "x.sif").read_text() == digest_of(image.manifest)
    with pytest.raises(Conclusion, match="changed since") as caught:
        puller()(f"{place}@{image.digest}", tmp_path / "y.sif")
    assert caught.value.reason == "bad-task"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(404, "base-unavailable"), (403, "base-unavailable"), (429, "base-unavailable"), (500, "network-unreachable")],
)
def test_classes(puller, server, image, tmp_path, fault, reason):
    server.push(image)
    server.fail("/blobs/", fault)
    name = f"{server.host}/lib/app@{image.digest}"
    with pytest.raises(Conclusion, match="cannot be pulled") as caught:
        puller()(name, tmp_path / "x.sif")
    assert caught.value.reason == reason
    assert caught.value.headline.startswith(name)
    assert "\n" not in caught.value.headline
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_few_at_once(puller, server, image, tmp_path):
    server.push(image)
    running, most, lock = [], [], threading.Lock()

    def slowly(layout, target):
        with lock:
            running.append(target)
            most.append(len(running))
        time.sleep(0.05)
        with lock:
            running.remove(target)

    def pull(number):
        puller(slowly)(f"{server.host}/lib/app@{image.digest}", tmp_path / f"{number}.sif")

    threads = [threading.Thread(target=pull, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 6
    assert max(most) <= 2


def test_place_is_given_back_where_it_fails(puller, server, image, tmp_path):
    server.push(image)

    def fail(layout, target):
        raise Conclusion("base-unavailable", "no")

    for _ in range(3):
        with pytest.raises(Conclusion, match="no"):
            puller(fail, at_once=1)(f"{server.host}/lib/app@{image.digest}", tmp_path / "x.sif")
