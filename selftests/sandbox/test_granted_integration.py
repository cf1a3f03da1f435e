"""A container uses the cores and devices that it was granted, and no others."""

import os
from pathlib import Path

import pytest

from pytest_otval.sandbox.base import DEFAULT_PATH, Bind, Command, ContainerSpec, Limits
from pytest_otval.sandbox.gpus import Gpu

pytestmark = pytest.mark.integration


@pytest.fixture
def output_of(real, image, tmp_path):
    """Run a shell line in a container of its own; return what it says."""

    def run(text, **spec):
        with real.sandbox.open(ContainerSpec(image.path, **spec)) as container:
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
    text = "head -c 1 /dev/urandom | wc -c; stat -c %F /dev/zero; head -c 1 /dev/zero"
    told = output_of(text, binds=[Bind(Path("/proc/self/root/dev/zero"), "/dev/zero")])
    assert told.startswith("1\ncharacter special file\n")
    assert "/dev/zero" in told and "Permission denied" in told
    assert "busy" in output_of(
        "umount /dev/zero; busybox umount /dev/zero; echo busy; head -c 1 /dev/zero | wc -c",
        binds=[Bind(Path("/proc/self/root/dev/zero"), "/dev/zero")],
    )


def test_variables_of_granted_gpus(output_of):
    """The runtime goes on where the host has no driver."""
    told = output_of("env", gpus=(Gpu(0),))
    assert "CUDA_VISIBLE_DEVICES=0\n" in told and "LD_LIBRARY_PATH=/.singularity.d/libs\n" in told
