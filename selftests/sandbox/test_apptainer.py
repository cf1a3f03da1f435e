"""The command line that the runtime is given; no container is started."""

from itertools import pairwise
from pathlib import Path

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.sandbox import apptainer
from pytest_otval.sandbox.apptainer import FLAVOURS, ApptainerSandbox, _host_environment
from pytest_otval.sandbox.base import Bind, ContainerSpec
from pytest_otval.sandbox.leftovers import OwnScratch


@pytest.fixture
def argv_of(tmp_path, monkeypatch):
    """Return what ``open`` would run for a spec."""
    monkeypatch.setattr(apptainer.shutil, "which", lambda name: f"/usr/bin/{name}")

    def argv(flavour="fakeroot-subuid", public="slirp4netns", layers=(), **spec):
        sandbox = ApptainerSandbox(FLAVOURS[flavour], Path("/toolbox.sqfs"), OwnScratch(tmp_path), public)
        return sandbox._argv(ContainerSpec((Path("/image.sqfs"), *map(Path, layers)), **spec), Path("/overlay"))

    return argv


def values_of(argv, flag):
    return [value for name, value in pairwise(argv) if name == flag]


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_each_container_is_apart(argv_of, flavour):
    argv = argv_of(flavour)
    assert {"--containall", "--cleanenv", "--no-eval", "--uts"} <= set(argv)
    assert values_of(argv, "--network") == ["none"]
    assert values_of(argv, "--overlay") == ["/overlay"]
    assert values_of(argv, "--bind") == ["/toolbox.sqfs:/.otval:image-src=/"]


@pytest.mark.parametrize(
    ("network", "public", "own"),
    [("none", "host", True), ("none", "none", True), ("public", "slirp4netns", True), ("public", "host", False)],
)
def test_network_namespace_is_its_own_unless_the_profile_says_host(argv_of, network, public, own):
    assert ("--net" in argv_of(public=public, network=network)) is own


def test_resolver_of_the_public_network(argv_of):
    assert values_of(argv_of(network="public"), "--dns") == ["10.0.2.3"]
    assert "--dns" not in argv_of(network="none")


def test_binds(argv_of):
    binds = [Bind(Path("/copy"), "/tests"), Bind(Path("/runtime.sqfs"), "/opt/x", "squashfs")]
    assert values_of(argv_of(binds=binds), "--bind")[1:] == ["/copy:/tests", "/runtime.sqfs:/opt/x:image-src=/"]


def test_which_folder_of_an_image_is_shown(argv_of):
    binds = [Bind(Path("/runtime.sqfs"), "/opt/x", "squashfs", inside="/opt/x")]
    assert values_of(argv_of(binds=binds), "--bind")[1:] == ["/runtime.sqfs:/opt/x:image-src=/opt/x"]


def test_layers_lie_below_the_writable_one(argv_of):
    argv = argv_of(layers=("/first.sqfs", "/second.sqfs"))
    assert values_of(argv, "--overlay") == ["/first.sqfs:ro", "/second.sqfs:ro", "/overlay"]


def test_fakeroot_program_is_for_builds(argv_of):
    flag = "--ignore-fakeroot-command"
    assert flag in argv_of("fakeroot-preload")
    assert flag not in argv_of("fakeroot-preload", for_build=True)


def test_variables_of_the_user_change_no_container(monkeypatch):
    monkeypatch.setenv("APPTAINER_BIND", "/etc")
    monkeypatch.setenv("APPTAINERENV_X", "1")
    monkeypatch.setenv("SINGULARITY_BIND", "/etc")
    monkeypatch.setenv("APPTAINER_CACHEDIR", "/cache")
    found = _host_environment()
    assert found["APPTAINER_CACHEDIR"] == "/cache"
    assert not {"APPTAINER_BIND", "APPTAINERENV_X", "SINGULARITY_BIND"} & set(found)


def test_missing_program(monkeypatch, tmp_path):
    monkeypatch.setattr(apptainer.shutil, "which", lambda name: None)
    with pytest.raises(Conclusion) as caught:
        ApptainerSandbox(FLAVOURS["userns"], Path("/toolbox.sqfs"), OwnScratch(tmp_path))
    assert caught.value.reason == "missing-tool"
