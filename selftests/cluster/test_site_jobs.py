import os
import shutil
import subprocess
from pathlib import Path

import pytest
import tomli

from pytest_otval.cluster import site_jobs
from pytest_otval.cluster.probes import Probe
from pytest_otval.cluster.site_changes import compare
from pytest_otval.cluster.site_jobs import job_script, look_from_jobs, read_answers
from pytest_otval.cluster.site_seen import Seen, look
from pytest_otval.core import OtvalUsageError
from pytest_otval.profile import PACKAGED, Profile, load_profile
from pytest_otval.workspace import Workspace

SITE = """
[slurm]
job_network = "proxy"
proxy_env = { https_proxy = "http://proxy.example.org:3128", no_proxy = "localhost" }
[slurm.partitions.cpu]
cores = 4
mounts = ["home", "work"]
[storage.home]
variable = "HOME"
exports = "OT_STORAGE_HOME"
purpose = "x"
[storage.work]
path = "/w"
exports = "OT_STORAGE_WORK"
purpose = "x"
"""
ANSWERS = """\
node\tn1
a line that the site's own prolog printed
workspace\tok
scratch\t/tmp/job.1: 14 GiB free, ext2/ext3
place\thome
namespaces\tok
no fakeroot-subuid\tFATAL: no\tmapping
flavour\tuserns
proxy\tproxy.example.org:3128
end\tok
"""


def _profile() -> Profile:
    return Profile(name="site", **tomli.loads(SITE))


def _read(said: str) -> tuple[dict[str, Probe], list[Seen]]:
    answers = list(read_answers(_profile(), "cpu", said))
    return (
        {one.name: one for one in answers if isinstance(one, Probe)},
        [one for one in answers if isinstance(one, Seen)],
    )


def test_what_a_node_says():
    probes, seen = _read(ANSWERS)
    assert all(probe.ok for probe in probes.values()), probes
    assert probes["cpu: containers"].detail == "userns"
    assert seen == [Seen(("slurm", "partitions", "cpu", "mounts"), ["home"], "a job")]


@pytest.mark.parametrize(
    ("without", "missed", "fix"),
    [
        ("workspace", "cpu: workspace", "move it to storage"),
        ("scratch", "cpu: scratch", "[scratch] path"),
        ("namespaces", "cpu: namespaces", "administrators"),
        ("proxy", "cpu: proxy", "proxy_env"),
        ("flavour", "cpu: containers", "Apptainer"),
        ("end", "cpu: job", "srun"),
    ],
)
def test_what_a_node_does_not_say_is_a_miss(without, missed, fix):
    probes, _ = _read("".join(line for line in ANSWERS.splitlines(True) if not line.startswith(f"{without}\t")))
    assert {name for name, probe in probes.items() if not probe.ok} == {missed}
    assert fix in probes[missed].fix


def test_the_script_is_clean_shell_whatever_the_folder_is_called(tmp_path):
    root = tmp_path / "a 'work' $(space)"
    script = tmp_path / "job.sh"
    script.write_text(job_script(_profile(), Workspace(root), root / "toolbox.sqfs"))
    # && and || are meant as they stand, and so is what stands in single quotes.
    result = subprocess.run(["shellcheck", "-e", "SC2015,SC2016", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "/dev/tcp/proxy.example.org/3128" in script.read_text()


def test_without_slurm_there_are_no_jobs():
    with pytest.raises(OtvalUsageError, match="has no \\[slurm\\]"):
        list(look_from_jobs(Profile(name="site")))


def test_a_job_that_does_not_start_is_taken_out_of_the_queue(tmp_path, monkeypatch):
    monkeypatch.setenv("OT_WORKSPACE", str(tmp_path))
    monkeypatch.setattr(site_jobs, "START_SECONDS", 0.0)
    monkeypatch.setattr(site_jobs, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(site_jobs, "ensure_toolbox", lambda folder: folder / "toolbox.sqfs")
    asked: list[list[str]] = []

    def ask(argv):
        asked.append(list(argv))
        cancelled = any(words[:2] == ["scancel", "--state=PENDING"] for words in asked)
        return {"sbatch": "7;site\n", "squeue": "" if cancelled else "PENDING\n"}.get(argv[0])

    (probe,) = look_from_jobs(_profile(), ask)
    assert "did not start" in probe.detail
    assert asked[-1] == ["scancel", "7"]
    assert list(tmp_path.glob("cache/*")) == []
    assert {"--partition=cpu", "--nodes=1", "--export=NONE", "--time=00:02:00"} <= set(asked[0])


@pytest.fixture
def on_login_node(localslurm, monkeypatch, tmp_path):
    """A workspace on shared storage, and commands asked as the user."""
    workspace = localslurm.shared / f"workspace-{tmp_path.name}"
    (workspace / "images").mkdir(parents=True)
    for folder in (workspace, workspace / "images"):
        shutil.chown(folder, localslurm.user)
    for name, value in {**localslurm.environment, "OT_WORKSPACE": str(workspace)}.items():
        monkeypatch.setenv(name, value)

    def ask(argv):
        if argv[0] == "sbatch":
            # Made by whoever runs the tests, written to by the job's user.
            shutil.chown(Path(argv[-1]).parent, localslurm.user)
        result = localslurm.run(*argv, check=False)
        return result.stdout if result.returncode == 0 else None

    return ask


@pytest.mark.integration
def test_a_real_slurm_is_as_its_profile_says(on_login_node):
    profile = load_profile("localslurm", PACKAGED.parent)
    probes, changes = compare(profile, [*look(profile, on_login_node), *look_from_jobs(profile, on_login_node)])
    assert [f"{probe.name}: {probe.detail}" for probe in probes if not probe.ok] == []
    assert changes == []
    names = {probe.name for probe in probes}
    assert {"slurm.max_array", "main: containers", "urgent: workspace", "slurm.partitions.main.mounts"} <= names


@pytest.mark.integration
def test_a_wrong_profile_is_told_by_a_real_slurm(on_login_node):
    text = (PACKAGED / "localslurm.toml").read_text()
    wrong = tomli.loads(
        text.replace("max_array = 10000", "max_array = 5").replace('mounts = ["shared"]', "mounts = []")
    )
    del wrong["extends"], wrong["slurm"]["partitions"]["urgent"]
    wrong["slurm"]["partitions"]["main"].update(cores=8, preemptible=False, max_time="01:00:00")
    wrong["slurm"]["partitions"]["main"].pop("memory_mb")
    wrong["slurm"].update(job_network="proxy", proxy_env={"http_proxy": "http://127.0.0.1:9"})
    profile = Profile(name="site", **wrong)
    probes, changes = compare(profile, [*look(profile, on_login_node), *look_from_jobs(profile, on_login_node)])
    assert {change.key[-1]: change.value for change in changes} == {
        "max_array": 10000,
        "cores": 4,
        "memory_mb": 8000,
        "preemptible": True,
        "max_time": "1-00:00:00",
        "mounts": ["shared"],
    }
    assert "main: proxy" in {probe.name for probe in probes if not probe.ok}
    assert "not in the profile: urgent" in {probe.detail for probe in probes}


@pytest.mark.integration
def test_a_workspace_that_nodes_do_not_see(on_login_node, monkeypatch, tmp_path):
    monkeypatch.setenv("OT_WORKSPACE", str(tmp_path))
    os.chmod(tmp_path, 0o755)
    profile = load_profile("localslurm", PACKAGED.parent)
    probes = [one for one in look_from_jobs(profile, on_login_node) if isinstance(one, Probe)]
    assert {probe.name for probe in probes if not probe.ok} == {"main: job", "urgent: job"}
