"""Room on shared storage, before anything is submitted."""

import pytest

from pytest_otval.cluster.preflight import Expected, expected, require_room, require_visible
from pytest_otval.core import OtvalUsageError
from pytest_otval.profile import PartitionSection, Profile, SlurmSection, StorageSection


def site(folder, **quota):
    place = StorageSection(variable="SITE_WORK", exports="OT_STORAGE_WORK", purpose="work", **quota)
    return Profile(name="site", storage={"work": place})


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("SITE_WORK", str(tmp_path))
    folder = tmp_path / "ws"
    folder.mkdir()
    for number in range(20):
        (folder / str(number)).write_bytes(bytes(1000))
    return folder


def test_a_run_leaves_few_files():
    # 10,000 tasks and four stages.
    assert expected(400, 40_000, 0).files < 2000
    assert expected(40, 1, 0, asks_models=True).files - expected(40, 1, 0).files == 60


def test_too_many_files_are_refused_with_the_numbers(workspace):
    with pytest.raises(OtvalUsageError, match=r"lies on work: 20 files are there and 90 come, of 100 that are allowed"):
        require_room(site(workspace, files_soft=100, files_hard=1000), workspace, workspace / "run", Expected(90, 0))
    require_room(site(workspace, files_soft=110), workspace, workspace / "run", Expected(90, 0))


def test_too_many_bytes_are_refused_with_the_numbers(workspace):
    with pytest.raises(OtvalUsageError, match=r"0\.0 GB are there and 2\.0 GB come, of 1\.5 GB"):
        require_room(site(workspace, gb_hard=1.5), workspace, workspace / "run", Expected(1, 2_000_000_000))


def test_a_place_without_a_known_quota_is_not_looked_at(workspace, tmp_path, monkeypatch):
    require_room(site(workspace), workspace, workspace / "run", Expected(10**6, 10**15))
    monkeypatch.delenv("SITE_WORK")
    require_room(site(workspace, files_hard=1), workspace, workspace / "run", Expected(10**6, 0))


def test_a_partition_whose_nodes_do_not_see_the_run_is_refused(workspace):
    partitions = {
        "gpu": PartitionSection(cores=4, mounts=("home",)),
        "cpu": PartitionSection(cores=4, mounts=("home", "work")),
        "any": PartitionSection(cores=4),
    }
    home = StorageSection(path="/home/nobody", exports="OT_STORAGE_HOME", purpose="home")
    profile = Profile(
        name="site",
        slurm=SlurmSection(partitions=partitions),
        storage={**site(workspace).storage, "home": home},
    )
    with pytest.raises(
        OtvalUsageError, match="lies on work, which nodes of the partition gpu do not see: they see home"
    ):
        require_visible(profile, "gpu", workspace / "run")
    require_visible(profile, "cpu", workspace / "run")
    require_visible(profile, "any", workspace / "run")
