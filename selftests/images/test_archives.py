"""Images in archives: both forms, and archives that are made to harm."""

import hashlib
import io
import json
import os
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.images import archives
from pytest_otval.images.archives import open_archive
from pytest_otval.images.oci import RefusedError
from selftests.images.oci_registry import TinyImage, digest_of, layer


@pytest.fixture
def image():
    one = layer({"a": b"one"})
    return TinyImage({"Env": ["A=1"], "Cmd": ["run"]}, [one, layer({"b": b"two"}), one])


@pytest.fixture
def opened(tmp_path):
    """Open an archive of these bytes."""

    def look(data, name="image.tar"):
        (tmp_path / name).write_bytes(data)
        return open_archive(tmp_path / name)

    return look


def refusal(opened, data):
    with pytest.raises(RefusedError) as caught, opened(data):
        pass
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300
    return str(caught.value)


def written(archive, folder):
    archive.write_layout(folder)
    blobs = {path.name: path.read_bytes() for path in (folder / "blobs/sha256").iterdir()}
    assert all(digest_of(data) == f"sha256:{name}" for name, data in blobs.items())
    manifest = json.loads(blobs[json.loads((folder / "index.json").read_text())["manifests"][0]["digest"][7:]])
    return manifest, blobs


@pytest.mark.parametrize("prefix", ["", "./"])
def test_oci_archive(opened, image, tmp_path, prefix):
    with opened(image.oci_archive(prefix)) as archive:
        assert archive.image.digest == digest_of(image.manifest)
        assert (archive.image.config.env["A"], archive.image.config.cmd) == ("1", ("run",))
        manifest, blobs = written(archive, tmp_path / "layout")
    assert manifest == json.loads(image.manifest)
    assert len(blobs) == 4, "manifest, configuration, two layers: one is there twice"


def test_docker_archive(opened, image, tmp_path):
    with opened(image.docker_archive()) as archive:
        assert archive.image.digest == digest_of(image.config_bytes)
        assert archive.image.config.env["A"] == "1"
        manifest, blobs = written(archive, tmp_path / "layout")
    assert [one["digest"] for one in manifest["layers"]] == [digest_of(one) for one in image.layers]
    assert {one["size"] for one in manifest["layers"]} == {len(one) for one in image.layers}
    assert set(image.layers) <= set(blobs.values())


def test_same_image_in_two_archives_is_one(opened, image):
    with opened(image.oci_archive()) as one, opened(image.oci_archive("./"), "other.tar") as other:
        assert one.image == other.image


def test_foreign_architecture(opened):
    foreign = TinyImage({}, [layer({})], architecture="mips")
    assert "linux/mips" in refusal(opened, foreign.oci_archive())
    assert "linux/mips" in refusal(opened, foreign.docker_archive())


def test_two_images(opened, image):
    other = TinyImage({"Env": ["A=2"]}, [])
    entries = [one.describe(one.manifest, "application/vnd.oci.image.manifest.v1+json") for one in (image, other)]
    top = json.dumps({"manifests": entries}).encode()
    assert "2 images" in refusal(opened, layer({"index.json": top}))
    saved = json.dumps([{"Config": "c", "Layers": []}] * 2).encode()
    assert "2 images" in refusal(opened, layer({"manifest.json": saved}))


@pytest.mark.parametrize("what", ["manifest", "config_bytes", "index"])
def test_changed_parts_are_found(opened, image, what):
    digest = digest_of(getattr(image, what))
    changed = image.oci_archive(**{f"b{digest[7:15]}": b"{}"})
    assert "other bytes" in refusal(opened, changed)


def test_changed_layer_is_found_when_it_is_read(opened, image, tmp_path):
    digest = json.loads(image.manifest)["layers"][0]["digest"]
    with opened(image.oci_archive(**{f"b{digest[7:15]}": b"x"})) as archive, pytest.raises(RefusedError, match="other"):
        archive.write_layout(tmp_path / "layout")
    image.layers[1] = layer({"b": b"not what the configuration says"})
    with opened(image.docker_archive()) as archive, pytest.raises(RefusedError, match="other bytes"):
        archive.write_layout(tmp_path / "other")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "neither index.json nor manifest.json"),
        ({"index.json": "/etc/passwd"}, "it has no file index.json"),
        ({"index.json": None}, "it has no file index.json"),
        ({"index.json": b"[" * 100_000}, "index is not one"),
        ({"index.json": b'{"manifests": [{"digest": "sha256:../../etc"}]}'}, "manifests.0.digest"),
        ({"index.json": b'{"manifests": [{"digest": "sha256:' + b"0" * 64 + b'"}]}'}, "it has no file blobs/sha256/00"),
        ({"index.json": b" " * (5 << 20)}, "larger than 4 MiB"),
        ({"manifest.json": b"{}"}, "manifest.json is not one"),
        ({"manifest.json": b'[{"Config": "../../x\\u001b", "Layers": []}]'}, "it has no file ../../x"),
        ({"manifest.json": b'[{"Config": "c", "Layers": ["l"]}]', "c": b"{}"}, "name different layers"),
        ({"manifest.json": b'[{"Config": "c", "Layers": []}]', "c": "/etc/passwd"}, "it has no file c"),
    ],
)
def test_odd_archives_are_refused_in_one_line(opened, files, words):
    assert words in refusal(opened, layer(files))


def test_layers_named_by_another_digest(opened):
    config = json.dumps({"rootfs": {"diff_ids": ["sha512:1"]}}).encode()
    files = {"manifest.json": b'[{"Config": "c", "Layers": ["l"]}]', "c": config, "l": b""}
    assert "something else than sha256" in refusal(opened, layer(files))


def test_links_lead_nowhere_but_to_members(opened, tmp_path):
    (tmp_path / "secret").write_bytes(b"{}")
    data = layer({"index.json": f"../../..{tmp_path}/secret"})
    assert "it has no file index.json" in refusal(opened, data)


def test_no_archives(opened, image, tmp_path):
    assert "damaged" in refusal(opened, b"no tar" * 1000)
    assert "damaged" in refusal(opened, image.oci_archive()[:700])
    assert "gunzip" in refusal(opened, b"\x1f\x8b" + bytes(1000))
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(RefusedError, match="FIFO"), open_archive(tmp_path / "fifo"):
        pass
    with pytest.raises(RefusedError, match="No such file"), open_archive(tmp_path / "none"):
        pass


def test_cut_within_a_layer(opened, tmp_path):
    image = TinyImage({}, [layer({"big": hashlib.sha256(b"").digest() * 4096})])
    data = image.oci_archive()
    assert "damaged" in refusal(opened, data[: len(data) - 20_000])


def test_huge_header_is_not_read(opened):
    info = tarfile.TarInfo("PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, 1 << 40
    assert "damaged" in refusal(opened, info.tobuf() + bytes(4096))


def test_too_many_members(opened, monkeypatch):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for number in range(101):
            tar.addfile(tarfile.TarInfo(str(number)))
    monkeypatch.setattr(archives, "_MAX_MEMBERS", 100)
    assert "more than 100 members" in refusal(opened, out.getvalue())


@given(st.data())
def test_any_change_is_refused_or_harmless(tmp_path_factory, data):
    image = TinyImage({}, [layer({"a": b"one"})])
    whole = bytearray(image.oci_archive() if data.draw(st.booleans()) else image.docker_archive())
    for position in data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=3)):
        whole[position] = data.draw(st.integers(0, 255))
    folder = tmp_path_factory.mktemp("archive")
    (folder / "image.tar").write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        with open_archive(folder / "image.tar") as archive:
            written(archive, folder / "layout")
    except RefusedError as error:
        assert str(error).isprintable()
