"""What programs of sites were recorded to print, and what is made of it."""

import pytest
import tomli

from pytest_otval.cluster.probes import Probe
from pytest_otval.cluster.site_seen import Seen, look
from pytest_otval.profile import Profile

SITE = """
[slurm.partitions.cpu]
cores = 384
core_multiple = 48
[slurm.partitions.h100]
cores = 128
gpus = 4
gres = "gpu:h100"
max_time = "1-00:00:00"
[slurm.partitions.preempt]
cores = 128
gres = "gpu"
preemptible = true
"""

SINFO = """\
cpu|100|384|768000|(null)|1-00:00:00
cpu|2|384|1536000|(null)|1-00:00:00
h100|96|128|770000|gpu:h100:4(S:0-3)|1-00:00:00
preempt|96|128|770000|gpu:h100:4(S:0-3),nvme:1|1-00:00:00
preempt|90|128|770000|gpu:h200:4(S:0-3)|1-00:00:00
devel|2|4+|8000+|(null)|30:00
strange|line
"""

CONFIG = """\
Configuration data as of 2026-11-30T09:00:00
MaxArraySize            = 4001
PreemptMode             = REQUEUE
PreemptType             = preempt/partition_prio
SLURM_VERSION           = 23.11.10
"""

PARTITION = "PartitionName={0} AllowGroups=ALL MaxTime=1-00:00:00 OverSubscribe=NO PreemptMode={1} State=UP\n"


def _profile(text: str) -> Profile:
    return Profile(name="site", **tomli.loads(text))


def _ask(**answers: str | None):
    """Answer a command by its first word, scontrol by what it shows."""

    def ask(argv):
        if argv[0] == "scontrol" and argv[2] == "partition":
            return PARTITION.format(argv[4], "REQUEUE" if argv[4] == "preempt" else "OFF")
        return answers.get(argv[0])

    return ask


def _seen(text: str, **answers: str | None) -> dict[str, object]:
    """Return what was seen by key, and details of probes by name."""
    found: dict[str, object] = {}
    for one in look(_profile(text), _ask(**answers)):
        if isinstance(one, Seen):
            found[".".join(one.key)] = one.value
        else:
            found[one.name] = one.detail
    return found


def test_partitions_as_most_of_their_nodes_are():
    assert _seen(SITE, sinfo=SINFO, scontrol=CONFIG, apptainer="1.4.5\n") == {
        "slurm.max_array": 4000,
        "slurm.partitions.cpu.cores": 384,
        "slurm.partitions.cpu.memory_mb": 768000,
        "slurm.partitions.cpu.gpus": 0,
        "slurm.partitions.cpu.gres": "",
        "slurm.partitions.cpu.max_time": "1-00:00:00",
        "slurm.partitions.cpu.preemptible": False,
        "slurm.partitions.h100.cores": 128,
        "slurm.partitions.h100.memory_mb": 770000,
        "slurm.partitions.h100.gpus": 4,
        "slurm.partitions.h100.gres": "gpu:h100",
        "slurm.partitions.h100.preemptible": False,
        "slurm.partitions.preempt.cores": 128,
        "slurm.partitions.preempt.memory_mb": 770000,
        "slurm.partitions.preempt.gpus": 4,
        "slurm.partitions.preempt.max_time": "1-00:00:00",
        "slurm.partitions.preempt.preemptible": True,
        "other partitions": "not in the profile: devel",
        "apptainer": "1.4.5",
    }


def test_a_partition_that_the_site_does_not_have():
    found = _seen("[slurm.partitions.gpu]\ncores = 1", sinfo=SINFO, scontrol=CONFIG)
    assert found["partition gpu"] == "there is none; the site has cpu, devel, h100, preempt"


@pytest.mark.parametrize(
    ("limit", "seen"),
    [("30:00", "00:30:00"), ("24:00:00", "1-00:00:00"), ("2-12:00:30", "2-12:00:30"), ("infinite", None)],
)
def test_limits_as_sinfo_writes_them(limit, seen):
    found = _seen("[slurm.partitions.x]\ncores = 4", sinfo=f"x|1|4|10|(null)|{limit}\n", scontrol=CONFIG)
    assert found.get("slurm.partitions.x.max_time") == seen


def test_where_slurm_does_not_answer_it_says_where_to_go():
    (probe,) = look(_profile(SITE), _ask(sinfo=SINFO))
    assert isinstance(probe, Probe)
    assert not probe.ok
    assert "login node" in probe.fix


AVAIL = """\
/apps/modulefiles/tools:
cuda/12.6.2
cuda/12.8.1(default)
cuda/13.0
gcc/13.3
apptainer
"""


@pytest.mark.parametrize(
    ("load", "seen"),
    [
        (["cuda", "gcc/13.3"], ["cuda", "gcc/13.3"]),
        (["cuda/11.0"], ["cuda/12.8.1"]),
        (["CUDA"], ["cuda/12.8.1"]),
        (["gcc/12"], ["gcc/13.3"]),
        (["apptainer"], ["apptainer"]),
    ],
)
def test_modules_are_named_as_the_site_names_them(load, seen):
    assert _seen(f"modules.load = {load}", bash=AVAIL) == {"modules.load": seen}


def test_a_module_that_is_not_there_at_all():
    found = _seen("modules.load = ['nvhpc']", bash=AVAIL)
    assert found["module nvhpc"] == "there is none of this name"
    assert _seen("modules.load = ['nvhpc']") == {"modules": "there is no command module"}


QUOTA = """\
Disk quotas for user x (uid 1):
Filesystem             space   quota   limit   grace   files   quota   limit   grace
nfs.example.org:/home 52428800* 104857600 209715200 0 1234 395594 495594 0
nfs.example.org:/other 1 0 0 0 1 0 0 0
"""
LFS = "     {path} 3908 0 0 - 81921* 81920 102400 6d23h59m50s\n"


def test_quotas(tmp_path, monkeypatch):
    monkeypatch.setenv("SITE_HOME", str(tmp_path))
    text = "storage.home = { variable = 'SITE_HOME', exports = 'OT_STORAGE_HOME', purpose = 'x' }"
    assert _seen(text, df="Filesystem Type\nnfs.example.org:/home nfs4\n", quota=QUOTA) == {
        "storage.home.gb_soft": 107.374,
        "storage.home.gb_hard": 214.748,
        "storage.home.files_soft": 395594,
        "storage.home.files_hard": 495594,
    }
    assert _seen(text, df="Filesystem Type\n10.0.0.1@o2ib:/fs lustre\n", lfs=LFS.format(path=tmp_path)) == {
        "storage.home.files_soft": 81920,
        "storage.home.files_hard": 102400,
    }
    assert "no quota is told" in str(_seen(text, df="Filesystem Type\n/dev/vda ext4\n", quota=QUOTA))
    monkeypatch.delenv("SITE_HOME")
    assert _seen(text) == {"storage home": "$SITE_HOME is not set here"}
