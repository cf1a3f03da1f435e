import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import OtvalUsageError
from pytest_otval.profile import Profile, load_profile
from pytest_otval.profile.slurm import seconds_of

SITE = """
[slurm]
partition = "cpu"
account = "b1"
options = { constraint = "nvme" }
job_network = "proxy"
proxy_env = { https_proxy = "http://proxy:80" }
[slurm.partitions.cpu]
cores = 384
core_multiple = 48
max_time = "1-00:00:00"
mounts = ["work"]
[slurm.partitions.h100]
cores = 128
gpus = 4
cores_per_gpu = 32
gres = "gpu:h100"
[storage.work]
variable = "WORK"
exports = "OT_STORAGE_WORK"
purpose = "project files"
files_soft = 10
files_hard = 20
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Read a profile from its text."""
    monkeypatch.delenv("OT_WORKSPACE", raising=False)
    (tmp_path / "clusters").mkdir()

    def read(text: str) -> Profile:
        (tmp_path / "clusters" / "site.toml").write_text(text)
        return load_profile("site", tmp_path)

    return read


def test_a_machine_without_slurm_has_no_section(load):
    assert load("").slurm is None


def test_a_site(load):
    profile = load(SITE)
    assert profile.slurm is not None
    name, partition = profile.slurm.choose()
    assert (name, partition.core_multiple, partition.max_seconds, partition.mounts) == ("cpu", 48, 86400, ("work",))
    assert profile.slurm.choose("h100")[1].gres == "gpu:h100"
    assert (profile.slurm.signal_seconds, profile.slurm.max_array, profile.slurm.container_starts) == (120, 1000, None)


def test_a_partition_that_is_not_there(load):
    slurm = load(SITE).slurm
    with pytest.raises(OtvalUsageError, match=r"no partition 'gpu'; known: cpu, h100"):
        slurm.choose("gpu")
    with pytest.raises(OtvalUsageError, match="choose one of cpu"):
        load("[slurm.partitions.cpu]\ncores = 4").slurm.choose()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('partition = "cpu"', 'partition = "gpu"', "there is no [slurm.partitions.gpu]"),
        ('partition = "cpu"', 'partion = "cpu"', "'slurm.partion' (did you mean 'partition'?)"),
        ("core_multiple", "core_multipel", "'slurm.partitions.cpu.core_multipel' (did you mean 'core_multiple'?)"),
        ("core_multiple = 48", "core_multiple = 385", "is more than the 384 cores"),
        ('gres = "gpu:h100"', "", "cores_per_gpu says nothing without gres"),
        ('gres = "gpu:h100"', 'gres = "gpu:h100:4"', "no generic resource without its number"),
        ('"1-00:00:00"', '"24h"', "no time as HH:MM:SS"),
        ("constraint", "--constraint", "without its dashes"),
        ('"nvme"', '"nvme && x"', "one word of printable ASCII"),
        ("https_proxy =", "'https proxy' =", "no name of a variable"),
        ('proxy_env = { https_proxy = "http://proxy:80" }', "", "proxy_env names none"),
        ('account = "b1"', 'account = "b1; reboot"', "letters, digits"),
        ('mounts = ["work"]', 'mounts = ["wrk"]', "there is no [storage.wrk]"),
        ("[slurm.partitions.cpu]", '[slurm.partitions."c pu"]', "slurm.partitions"),
    ],
)
def test_a_wrong_value_is_one_line(load, old, new, says):
    assert old in SITE
    with pytest.raises(OtvalUsageError) as raised:
        load(SITE.replace(old, new, 1))
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


@given(st.integers(0, 99), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_time_limits(days, hours, minutes, seconds):
    tail = f"{hours:02}:{minutes:02}:{seconds:02}"
    within_day = hours * 3600 + minutes * 60 + seconds
    assert seconds_of(tail) == within_day
    assert seconds_of(f"{days}-{tail}") == days * 86400 + within_day


@pytest.mark.parametrize("text", ["", "60", "1:00", "1-12", "00:60:00", "-1:00:00", "1:00:00 ", "infinite"])
def test_what_is_no_time_limit(text):
    with pytest.raises(ValueError, match="no time as"):
        seconds_of(text)
