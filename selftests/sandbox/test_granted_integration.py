"""A container uses the cores and devices that it was granted, and no others."""

import os
from pathlib import Path

import pytest

from pytest_otval.sandbox.base import DEFAULT_PATH, Bind, Command, ContainerSpec, Limits
from pytest_otval.sandbox.gpus import Gpu

pytestmark = pytest.mark.integration

SAME = Bind(Path("/proc/self/root/dev/zero"), "/dev/zero")


@pytest.fixture
def output_of(real, image, tmp_path):
    """Run a shell line in a container of its own; return what it says."""

    def run(text, **spec):
        with real.sandbox.open(ContainerSpec(image.files, **spec)) as container:
            log = tmp_path / "log"
            container.run(Command(["/bin/sh", "-c", text], log, {"PATH": DEFAULT_PATH}))
            return log.read_text()

    return run


@pytest.mark.parametrize(("cpus", "count"), [(None, 2), (1, 1)])
def test_cores(output_of, cpus, count):
    granted = frozenset(sorted(os.sched_getaffinity(0))[-2:])
    told = output_of("grep Cpus_allowed_list /proc/self/status; nproc", cores=granted, limits=Limits(cpus=cpus))
    _, numbers, nproc = told.split()
    first, _, last = numbers.replace(",", "-").partition("-")
    assert {int(first), int(last or first)} == set(sorted(granted)[:count])
    assert int(nproc) == min(count, len(granted))


def test_a_device_that_is_bound_over_by_itself_cannot_be_opened(output_of):
    """How GPUs that were not granted are closed; each machine has a /dev/zero."""
    undo = "umount /dev/zero; mount -o remount,bind,dev /dev/zero; rm -f /dev/zero; mknod /dev/zero c 1 5"
    text = f"stat -c %F /dev/zero; for x in zero random; do head -c 1 /dev/$x | wc -c; done; {undo}"
    told = output_of(f"({text}; head -c 1 /dev/zero | wc -c) 2>/dev/null", binds=[SAME])
    assert told.splitlines() == ["character special file", "0", "1", "0"]


def test_variables_of_granted_gpus(output_of):
    """The runtime goes on where the host has no driver."""
    told = output_of("env", gpus=(Gpu(0),))
    assert "CUDA_VISIBLE_DEVICES=0\n" in told and "LD_LIBRARY_PATH=/.singularity.d/libs\n" in told
