import pytest
import tomli

from pytest_otval.cluster.probes import Probe
from pytest_otval.cluster.site_changes import changed, compare, propose
from pytest_otval.cluster.site_seen import Seen
from pytest_otval.profile import PACKAGED, Profile, load_profile

SITE = """\
# Our site.
[slurm]
max_array = 100 # as the mail said

[slurm.partitions.cpu]
cores = 48
mounts = ["home"]

[storage.home]
variable = "HOME"
exports = "OT_STORAGE_HOME"
purpose = "settings"
gb_soft = 107.374

[[facts]]
source = "a mail"
date = "2026-10"
verified = false
keys = ["slurm.max_array"]

[[facts]]
source = "users"
date = "2026-10"
verified = true
keys = ["slurm", "storage", "storage.home.gb_soft"]
"""


PROPOSED = """\
--- FILE
+++ FILE (proposed)
@@ -1,10 +1,11 @@
 # Our site.
 [slurm]
-max_array = 100 # as the mail said
+max_array = 4000 # as the mail said

 [slurm.partitions.cpu]
 cores = 48
-mounts = ["home"]
+mounts = ["home", "work"]
+memory_mb = 1000

 [storage.home]
 variable = "HOME"
@@ -13,13 +14,17 @@
 gb_soft = 107.374

 [[facts]]
-source = "a mail"
-date = "2026-10"
-verified = false
-keys = ["slurm.max_array"]
-
-[[facts]]
 source = "users"
 date = "2026-10"
 verified = true
 keys = ["slurm", "storage", "storage.home.gb_soft"]
+
+[[facts]]
+source = "doctor on login1"
+date = "2026-11-30"
+verified = true
+keys = [
+    "slurm.max_array",
+    "slurm.partitions.cpu.memory_mb",
+    "slurm.partitions.cpu.mounts",
+]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    return path


def _compare(*seen):
    return compare(Profile(name="site", **tomli.loads(SITE)), seen)


def test_what_is_as_the_profile_says_changes_nothing(file):
    probe = Probe("site", "other", True)
    same = (
        Seen(("slurm", "max_array"), 100, "scontrol"),
        Seen(("slurm", "partitions", "cpu", "mounts"), ["home"], "a job"),
        Seen(("slurm", "partitions", "cpu", "preemptible"), False, "scontrol"),
        Seen(("storage", "home", "gb_soft"), 107.0, "quota"),
    )
    probes, changes = _compare(probe, *same)
    assert probes[0] is probe
    assert all(one.ok for one in probes)
    assert changes == []
    assert propose(file, changes, "doctor", "2026-11-30") == ""


def test_a_difference_says_whose_word_stands_against_it():
    (probe,), _ = _compare(Seen(("slurm", "max_array"), 4000, "scontrol show config"))
    assert not probe.ok
    assert probe.detail == ("4000 (scontrol show config); the profile says 100 (a mail, 2026-10, not verified)")
    (probe,), _ = _compare(Seen(("slurm", "partitions", "cpu", "memory_mb"), 1000, "sinfo"))
    assert "the profile says nothing (users, 2026-10)" in probe.detail


def test_the_proposed_change_keeps_the_file_as_it_is_written(file):
    changes = [
        Seen(("slurm", "max_array"), 4000, "scontrol"),
        Seen(("slurm", "partitions", "cpu", "memory_mb"), 1000, "sinfo"),
        Seen(("slurm", "partitions", "cpu", "mounts"), ["home", "work"], "a job"),
    ]
    diff = propose(file, changes, "doctor on login1", "2026-11-30")
    assert [line.rstrip() for line in diff.splitlines()] == PROPOSED.replace("FILE", str(file)).splitlines()


@pytest.mark.parametrize("name", ["helma", "zih", "localslurm"])
def test_a_proposed_profile_is_a_profile(name, tmp_path, monkeypatch):
    monkeypatch.delenv("OT_WORKSPACE", raising=False)
    (tmp_path / "clusters").mkdir()
    partition = next(iter(load_profile(name, PACKAGED.parent).slurm.partitions))
    changes = [
        Seen(("slurm", "partitions", partition, "memory_mb"), 12345, "sinfo"),
        Seen(("slurm", "max_array"), 77, "scontrol"),
        Seen(("scratch", "path"), "/local", "a job"),
    ]
    text = changed((PACKAGED / f"{name}.toml").read_text(), changes, "doctor", "2026-11-30")
    (tmp_path / "clusters" / f"{name}.toml").write_text(text)
    profile = load_profile(name, tmp_path)
    assert (profile.slurm.max_array, profile.slurm.partitions[partition].memory_mb) == (77, 12345)
    assert compare(profile, changes)[1] == []
