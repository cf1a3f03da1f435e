"""A layer holds what the same steps leave in a container."""

import os
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_otval.core import Conclusion
from pytest_otval.images import making
from pytest_otval.images.layer import NotALayerError
from pytest_otval.sandbox.base import Command, ContainerSpec
from selftests.images.merged import merged

pytestmark = pytest.mark.integration

FILES = {
    "a": "a",
    "b": "b",
    "sub/x": "x",
    "sub/deep/y": "y",
    "over/file": "new",
    "over/sub/x": "new",
    "folder/file/z": "z",
    "lib/z": "z",
}
LAYERS = {
    "file to a new name": "COPY a /app/new",
    "file over a file": "COPY a /app/file",
    "file into a folder": "COPY a /app/",
    "file into a folder that does not say so": "COPY a /app",
    "file through a link to a folder": "COPY a /lib/",
    "file through a link that does not say so": "COPY a /applink",
    "file over what a link points to": "COPY a /filelink",
    "file over a link in its folder": "COPY links /x/\nCOPY links/run.sh /x/up\nCOPY up /x/",
    "file behind a link that leads nowhere": "COPY a /dangling/x/",
    "file where a link leads to": "COPY a /dangling",
    "new folders": "COPY a /n1/n2/n3/",
    "new folders for somebody": "COPY --chown=app a /n1/n2/n3/",
    "new folders with a mode": "COPY --chmod=711 a /n1/n2/n3/",
    "folder": "COPY sub /app",
    "folder over folders and files": "COPY over /app",
    "folder to the root": "COPY sub /",
    "folder to a new place": "COPY sub /n1/n2",
    "owners by name": "COPY --chown=app:staff sub /app",
    "owners by number": "COPY --chown=9 sub /app",
    "symbolic modes": "COPY --chmod=u=rwX,go= sub /app",
    "several files": "COPY a b sub /several/",
    "several files without a slash": "COPY a b /several",
    "several into a folder without a slash": "COPY a b /app",
    "pattern": "COPY s*/* ? /pattern/",
    "inline files": "COPY <<A <<B /inline/\n1\nA\n2\nB",
    "inline file with a mode": "COPY --chmod=755 <<A /inline\n#!/bin/sh\nA",
    "the same again": "COPY sub /app\nCOPY a /app/x\nCOPY b /app/x",
    "folder that was just made": "WORKDIR /w/v\nCOPY a .\nWORKDIR x\nCOPY b ..",
    "WORKDIR of a user": "USER app\nWORKDIR /w/v\nCOPY a .",
    "WORKDIR that is there": "USER app\nWORKDIR /app\nCOPY a .",
    "WORKDIR through a link": "WORKDIR /applink/w",
    "WORKDIR behind a link that leads nowhere": "WORKDIR /dangling/w",
    "links and modes of the context": "COPY links /app",
    "links for somebody": "COPY --chown=9:8 links /app",
}
CONTAINERS = {
    "folder over a link": "COPY lib /x\nCOPY all /",
    "folder over a file": "COPY folder /app",
    "file over a folder": "COPY --chmod=600 sub/x /app/\nCOPY a /app/x/\nCOPY files /app",
    "file below a file": "COPY a /app/file/x",
    "through a loop": "COPY a /loop/x",
    "over a loop": "COPY a /loop",
    "user that is not there": "COPY --chown=nobody a /",
    "users that are copied": "COPY --chown=app passwd /etc/\nCOPY --chown=late a /",
}


@pytest.fixture
def context(environment):
    def write(tail):
        folder = environment(f"FROM tiny\nRUN true\n{tail}\n", FILES)
        for path in ("all/lib/z", "files/sub"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text("x")
        (folder / "passwd").write_text("root:x:0:0::/:/bin/sh\nlate:x:80:81::/:/bin/sh\napp:x:1:2::/:/bin/sh\n")
        (folder / "up").write_text("up")
        (folder / "links").mkdir(exist_ok=True)
        for name, target in (("up", "../x"), ("root", "/etc/passwd"), ("nowhere", "nothing")):
            if not (folder / "links" / name).is_symlink():
                (folder / "links" / name).symlink_to(target)
        (folder / "links" / "run.sh").write_text("#!/bin/sh\n")
        (folder / "links" / "run.sh").chmod(0o700)
        return folder

    return write


@pytest.fixture
def both(tiny, context, request_of):
    """Build a tail both ways; return the layer's and the container's outcome, and whether there was a layer."""
    written = []
    write_layer = making.write_layer

    def outcome(images, folder):
        try:
            return merged(images.ensure(request_of(folder)).files)
        except Conclusion as conclusion:
            return conclusion.reason, conclusion.headline

    def build(tail):
        folder = context(tail)
        written.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(making, "write_layer", lambda *words: (write_layer(*words), written.append(True)))
            # An Images of its own each time: it plans a folder once.
            one = outcome(tiny("layered"), folder)
            was_layer = bool(written)
            patch.setattr(making, "write_layer", refuse)
            other = outcome(tiny("contained"), folder)
        return one, other, was_layer

    return build


def refuse(*words):
    raise NotALayerError("not here")


def same(one, other):
    if isinstance(one, dict) and isinstance(other, dict):
        return {path: (one.get(path), other.get(path)) for path in one | other if one.get(path) != other.get(path)}
    return {} if one == other else {"outcome": (one, other)}


def test_layers_of_the_table(both, machine):
    """One test: each start of a container costs more than what it copies."""
    wrong = {}
    for name, tail in LAYERS.items():
        if "USER" in tail and not machine[0].maps_uids:
            continue
        one, other, was_layer = both(tail)
        differences = same(one, other)
        if differences or not was_layer or not isinstance(one, dict):
            wrong[name] = (was_layer, differences or one)
    assert not wrong


def test_what_is_left_to_the_container(both):
    wrong = {}
    for name, tail in CONTAINERS.items():
        one, other, was_layer = both(tail)
        if same(one, other) or was_layer:
            wrong[name] = (was_layer, one, other)
        assert name.startswith("users") or one[0] == "build-failed", (name, one)
    assert not wrong


SOURCES = st.sampled_from(["a", "b", "sub", "over", "links", "folder", "lib", "sub/x", "a b", "s*", "files", "all"])
PLACES = st.sampled_from(
    ["/", "/app", "/app/", "/app/sub", "/app/file", "/applink", "/applink/", "/lib", "/lib/", "/filelink", "/dangling",
     "/dangling/", "/n", "/n/", "/n/m", "/n/m/", ".", "x/", "../y", "/var/links/", "/tmp"]
)  # fmt: skip
FLAGS = st.sampled_from(["", "", "", "--chown=app ", "--chown=9:staff ", "--chmod=640 ", "--chmod=go-r "])
STEPS = st.one_of(
    st.builds("COPY {}{} {}".format, FLAGS, SOURCES, PLACES),
    st.builds("WORKDIR {}".format, PLACES),
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(tail=st.lists(STEPS, min_size=1, max_size=6).map("\n".join))
def test_any_tail(both, tail):
    one, other, _ = both(tail)
    assert not same(one, other), tail


def test_layered_files_are_files_like_others(tiny, context, request_of, machine, tmp_path):
    """A container over a layer writes over its files, removes and renames them."""
    image = tiny().ensure(request_of(context("COPY sub /app\nCOPY a /app/file")))
    assert len(image.files) > 1
    script = (
        "set -e; cd /app; test $(cat file) = a; echo more >> file; test $(cat x) = x; rm x; test ! -e x; "
        "mv deep moved; test -e moved/y; test ! -e deep; mkdir deep; test -z $(ls deep); rm -r sub; test ! -e sub; "
        "ln -s file again; cat again; chmod 600 file; ls -ln"
    )
    log = tmp_path / "log"
    with machine[0].open(ContainerSpec(image.files, overlay=tmp_path / "overlay")) as container:
        assert container.run(Command(["/bin/busybox", "sh", "-c", script], log)).ok, log.read_text()
    assert re.match(r"amore\n", log.read_text())
    with machine[0].open(ContainerSpec(image.files)) as container:
        assert container.run(Command(["/bin/busybox", "cat", "/app/x", "/app/file"], log)).ok
    assert log.read_text().endswith("xa")
    machine[0].remove(tmp_path / "overlay")


def test_times_of_the_future_and_of_the_past_change_nothing(tiny, context, request_of):
    folder = context("COPY sub /app\nRUN true\nCOPY a /")
    for path, seconds in ((folder / "a", 4_000_000_000), (folder / "sub" / "x", 0)):
        os.utime(path, (seconds, seconds))
    found = merged(tiny().ensure(request_of(folder)).files)
    assert (found["/a"].content, found["/app/x"].content) == (b"a", b"x")
