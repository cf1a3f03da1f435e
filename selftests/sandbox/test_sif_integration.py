"""SIF files as the runtime reads them."""

import subprocess

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.images.sif import squashfs_in_sif
from pytest_otval.sandbox.base import Command, ContainerSpec
from pytest_otval.sandbox.sif import write_sif
from selftests.images.store_of_images import packed

pytestmark = pytest.mark.integration


@pytest.fixture
def layer(tmp_path):
    (tmp_path / "layer" / "opt").mkdir(parents=True)
    (tmp_path / "layer" / "opt" / "added").write_text("by the layer")
    (tmp_path / "layer.sqfs").write_bytes(packed(tmp_path / "layer"))
    return tmp_path / "layer.sqfs"


def test_layered_image_runs_from_one_file(real, image, layer, tmp_path):
    target = tmp_path / "out" / "image.sif"
    (tmp_path / "about.json").write_text("{}")
    write_sif([*image.files, layer], [tmp_path / "about.json"], target)
    assert [path.name for path in target.parent.iterdir()] == ["image.sif"]
    log = tmp_path / "log"
    with real.sandbox.open(ContainerSpec((target,))) as container:
        assert container.run(Command(["/bin/cat", "/opt/added"], log)).ok
    assert log.read_text() == "by the layer"
    said = subprocess.run(["apptainer", "sif", "dump", "3", target], capture_output=True, check=True).stdout
    assert said == b"{}"
    with pytest.raises(OtvalUsageError, match="name a new file"):
        write_sif(image.files, [], target)


def test_root_is_in_it_byte_for_byte(image, tmp_path):
    write_sif(image.files[:1], [], tmp_path / "image.sif")
    data = (tmp_path / "image.sif").read_bytes()
    with (tmp_path / "image.sif").open("rb") as file:
        start, length = squashfs_in_sif(file, len(data))
    assert data[start : start + length] == image.files[0].read_bytes()


def test_target_that_cannot_be_written(image, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OtvalUsageError, match="cannot be written"):
        write_sif(image.files[:1], [], tmp_path / "file" / "image.sif")
