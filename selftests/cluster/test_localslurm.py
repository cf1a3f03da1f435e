"""What the Slurm that other tests rely on is like: as unpleasant as it should be, and no more."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from selftests.localslurm import SCRIPT, new_localslurm, running_below

pytestmark = pytest.mark.integration

REPOSITORY = Path(__file__).parents[2]


def test_nodes_see_shared_storage_and_the_system_alone(localslurm):
    (localslurm.shared / "here").write_text("seen\n")
    shown = localslurm.on(
        "n1", f"cat {localslurm.shared}/here; ls -d {REPOSITORY} /home/* /root/* /work 2>/dev/null; id -un"
    )
    assert shown.split() == ["seen", f"/home/{localslurm.user}", localslurm.user]
    assert localslurm.on("n1", "ls -A ~; hostname; python3 -c 'print(1)'").split() == ["n1", "1"]


def test_a_node_has_its_own_tmp(localslurm):
    name = f"/tmp/otval-of-n1-{os.getpid()}"
    localslurm.on("n1", f"touch {name} /var{name}")
    try:
        assert localslurm.on("n1", f"ls {name}").strip() == name
        assert localslurm.on("n2", f"ls -d {name} /var{name} 2>/dev/null; true") == ""
        assert not Path(name).exists()
    finally:
        localslurm.on("n1", f"rm -f {name} /var{name}")


def test_a_batch_job_has_a_tmpdir_until_it_ends(localslurm):
    job = localslurm.submit('stat -c "%n %U %a" "$TMPDIR"; mkdir "$TMPDIR/x"; chmod 0 "$TMPDIR/x"', "-w", "n2")
    localslurm.wait_for(job, "COMPLETED")
    folder, owner, mode = localslurm.output(job).split()
    assert (folder, owner, mode) == (f"/tmp/job.{job}", localslurm.user, "700")
    localslurm.until(lambda: localslurm.on("n2", f"ls -d {folder} 2>/dev/null; true") == "")


def test_a_job_gets_nothing_of_its_submitter_and_has_no_module_command(localslurm):
    job = localslurm.submit('echo "of submitter: $OF_SUBMITTER"; type module; type sacct', OF_SUBMITTER="yes")
    localslurm.wait_for(job, "COMPLETED", "FAILED")
    lines = localslurm.output(job).splitlines()
    assert lines[0] == "of submitter: "
    assert "module: not found" in lines[1]


def test_what_a_job_started_ends_with_it(localslurm):
    mark = f"31{os.getpid()}"
    job = localslurm.submit(f"setsid sleep {mark} & sleep 1", "-w", "n1")
    localslurm.wait_for(job, "COMPLETED")
    localslurm.until(lambda: localslurm.on("n1", f"pgrep -f '^sleep {mark}' || true") == "")


def test_an_array_spreads_over_the_nodes(localslurm):
    job = localslurm.submit("sleep 2; hostname", "--array=0-3")
    localslurm.wait_for(job, "COMPLETED")
    assert {localslurm.output(f"{job}_{index}").strip() for index in range(4)} == {"n1", "n2"}


def test_an_ordinary_user_has_containers_on_a_node(localslurm, image):
    names = []
    for number, file in enumerate(image.files):
        target = localslurm.shared / f"layer{number}.sqfs"
        shutil.copyfile(file, target)
        target.chmod(0o644)
        names.append(str(target))
    assert len(names) == 1
    said = localslurm.on(
        "n1",
        f'cd "$TMPDIR" && mkdir layer && apptainer -s exec --fakeroot --containall --no-home --net --network none'
        f" --overlay layer {names[0]} sh -c 'id -u; echo written >/file' && cat layer/upper/file",
    )
    assert said.split() == ["0", "written"]


def test_a_full_disk(localslurm):
    localslurm.fault("fill", "n2")
    try:
        assert "No space left" in localslurm.on("n2", 'seq 1000000 2>&1 >"$TMPDIR/x" || true')
    finally:
        localslurm.fault("free", "n2")
    assert localslurm.on("n2", 'seq 1000000 >"$TMPDIR/x" && wc -l <"$TMPDIR/x"').strip() == "1000000"


def test_a_killed_controller_goes_on(localslurm):
    job = localslurm.submit("sleep 12")
    localslurm.wait_for(job, "RUNNING")
    localslurm.kill_controller()
    localslurm.fault("up")
    localslurm.wait_for(job, "COMPLETED")


def test_a_killed_slurmd_leaves_its_jobs_alone(localslurm):
    job = localslurm.submit("sleep 3; echo done", "-w", "n1")
    localslurm.wait_for(job, "RUNNING")
    localslurm.fault("kill", "slurmd", "n1")
    localslurm.fault("up")
    localslurm.wait_for(job, "COMPLETED")
    assert localslurm.output(job) == "done\n"


def test_memory_that_was_not_asked_for_ends_a_job(localslurm):
    job = localslurm.submit("python3 -c 'import time; x = bytearray(600 << 20); time.sleep(60)'")
    localslurm.wait_for(job, "FAILED", "OUT_OF_MEMORY", "CANCELLED")
    assert "memory limit" in localslurm.output(job)


def test_an_urgent_job_takes_the_place_of_others_which_start_again(localslurm):
    job = localslurm.submit('echo "life $SLURM_RESTART_COUNT"; [ "$SLURM_RESTART_COUNT" ] || sleep 600')
    localslurm.until(lambda: localslurm.output(job))
    urgent = localslurm.submit("true", "-p", "urgent", "-N2", "--exclusive")
    localslurm.wait_for(urgent, "COMPLETED")
    localslurm.wait_for(job, "COMPLETED")
    lives = [line for line in localslurm.output(job).splitlines() if line.startswith("life")]
    assert lives == ["life ", "life 1"]


@pytest.mark.slow
def test_a_lost_node_gives_its_job_to_the_other(localslurm):
    job = localslurm.submit('hostname; [ "$SLURM_RESTART_COUNT" ] || sleep 600', "--requeue")
    localslurm.until(lambda: localslurm.output(job))
    first = localslurm.output(job).strip()
    localslurm.fault("down", first)
    try:
        localslurm.wait_for(job, "COMPLETED")
    finally:
        localslurm.fault("up")
    assert localslurm.output(job).split() == [first, {"n1": "n2", "n2": "n1"}[first]]


@pytest.mark.skipif(os.getuid() != 0, reason="only root starts one")
def test_stop_leaves_nothing():
    with new_localslurm(LOCALSLURM_NODES="1") as localslurm:
        job = localslurm.submit("setsid sleep 1000 & sleep 1000")
        localslurm.wait_for(job, "RUNNING")
        localslurm.until(lambda: any("sleep" in line for line in running_below(localslurm.folder)))
    assert running_below(localslurm.folder) == []
    assert not localslurm.folder.exists()


@pytest.mark.parametrize("folder", ["/tmp/otval-slurm", "/var/tmp/x", "/tmp/../tmp/x", "/var/lib/a b", "/run/$(id)"])
def test_a_folder_that_nodes_would_hide_is_refused(folder):
    result = subprocess.run([SCRIPT, folder, "start"], capture_output=True, text=True, check=False)
    assert result.returncode == 4
    assert result.stderr.count("\n") == 1
    assert not Path(folder).exists()


@pytest.mark.parametrize("words", [("down", "n9"), ("down", "/etc"), ("kill", "munged"), ("fill",), ("nothing",)])
def test_what_is_no_action_is_refused(localslurm, words):
    result = localslurm.run(SCRIPT, localslurm.folder, *words, check=False)
    assert result.returncode == 4
    assert result.stderr.count("\n") == 1
