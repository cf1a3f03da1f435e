"""The layer of a build's changes over its base is the merged view, on real containers."""

import hashlib
from pathlib import Path

import pytest

from pytest_otval.images.changes import RUNTIMES
from pytest_otval.images.lower import Lower
from pytest_otval.images.model import ImageRequest
from pytest_otval.sandbox.base import Command, ContainerSpec
from pytest_otval.stages.machine import Machine, own_extensions
from pytest_otval.task.packed.unpack import Kind
from pytest_otval.workspace import Workspace

pytestmark = pytest.mark.integration

STEPS = {
    "added and touched": r"""
RUN mkdir -p /new/a && echo x > /new/a/f && ln -s a /new/l && ln /new/a/f /new/a/g && mkfifo /new/p
RUN chmod 700 /srv /etc/passwd && touch -d @1 /etc/issue && mv /etc/debian_version /etc/moved
RUN f=/etc/issue.net; t=$(stat -c %y $f); sed -i 's/./X/' $f; touch -d "$t" $f
RUN mkdir /odd && cd /odd && touch -- -x ' y ' 'a"b' "c'd" "$(printf '\377')"
RUN perl -MSocket -e 'socket(S,1,1,0);bind(S,sockaddr_un("/srv/s"))'
""",
    "removed": r"""
RUN rm -r /etc/apt /etc/issue && rm -r /usr/share/doc
RUN rm -r /media && touch /media && rm /etc/issue.net && mkdir /etc/issue.net && ln -sf x /etc/debian_version
RUN rm -r /etc/cron.daily && mkdir /etc/cron.daily && echo x > /etc/cron.daily/only
""",
    "between copies": r"""
RUN rm /etc/issue && echo 1 > /srv/x
COPY f /srv/
RUN rm /srv/x && echo 2 > /etc/issue
COPY f /srv/x
""",
    "line end in a name": r"""
RUN touch /srv/"$(printf 'a\nb')" && rm /etc/issue
""",
}


def tree(files):
    """Everything in an image: kind, mode, owner, target and content by path."""
    found = {}

    def walk(lower, folder, above):
        for name in lower.names(folder):
            node = lower.child(folder, name)
            kind, path = node.inode.kind, f"{above}/{name}"
            if RUNTIMES.match(path):
                continue
            content = hashlib.sha256(lower.read(node, 1 << 26)).hexdigest() if kind is Kind.FILE else ""
            found[path] = (kind, node.inode.mode, node.inode.owner, node.inode.target, content)
            if kind is Kind.FOLDER:
                walk(lower, node, path)

    with Lower(files) as lower:
        walk(lower, lower.root(), "")
    return found


@pytest.fixture(scope="module")
def machine(real, image, tmp_path_factory):
    """A machine over an empty store that has the base already; the shared one keeps none of these images."""
    store = tmp_path_factory.mktemp("workspace") / "images"
    store.mkdir()
    for file in Path(image.files[0]).parent.glob(f"{image.key}.*"):
        (store / file.name).symlink_to(file)
    # Not closed: the scratch folder is the process's, and so the shared machine's as well.
    return Machine(real.settings, Workspace(store.parent), real.profile, own_extensions())


@pytest.mark.parametrize("name", STEPS)
def test_layers_and_the_merged_view_are_the_same(machine, environment, monkeypatch, name):
    made = {}
    for way in ("layers", "whole"):
        if way == "whole":
            monkeypatch.setattr("pytest_otval.images.build.pack_changes", lambda *arguments: False)
        # Another variable makes another image of the same files.
        folder = environment(f"FROM debian:bookworm\nENV WAY={way}\n{STEPS[name]}", {"f": "content"})
        made[way] = machine.images.ensure(ImageRequest(folder, None, 600.0))
        machine.images._plans.clear()
    assert len(made["whole"].files) <= 2
    whole, layers = tree(made["whole"].files), tree(made["layers"].files)
    assert {path: facts for path, facts in layers.items() if whole.get(path) != facts} == {}
    assert set(whole) == set(layers)
    assert (len(made["layers"].files) > 1) == (name != "line end in a name")


def test_what_a_container_sees_is_what_the_files_say(machine, environment, tmp_path):
    folder = environment(f"FROM debian:bookworm\nRUN rm -r /etc/apt\n{STEPS['between copies']}", {"f": "c"})
    image = machine.images.ensure(ImageRequest(folder, None, 600.0))
    assert len(image.files) == 4
    log = tmp_path / "log"
    script = "ls -d /etc/apt; cat /etc/issue /srv/x; rm /srv/x; mkdir /etc/apt; ls /etc/apt /srv"
    with machine.sandbox.open(ContainerSpec(image.files)) as container:
        container.run(Command(["/bin/sh", "-c", script], log, {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}))
    words = log.read_text().splitlines()
    assert words == [
        "ls: cannot access '/etc/apt': No such file or directory",
        "2",
        "c/etc/apt:",
        "",
        "/srv:",
        "f",
    ]
