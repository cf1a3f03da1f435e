"""Watching real containers: what was changed is told, whatever its owners, modes and shapes."""

from pathlib import Path

import pytest

from pytest_otval.sandbox.base import TOOLBOX, Command, ContainerSpec
from pytest_otval.sandbox.traffic import MAX_KEPT
from pytest_otval.trial.watch import WatchingSandbox

pytestmark = pytest.mark.integration

ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


@pytest.fixture
def watch(real, image, tmp_path):
    overlay = real.scratch.new("watch") / "overlay"

    def run(script, network="none"):
        sandbox = WatchingSandbox(real.sandbox)
        with sandbox.open(ContainerSpec(image.files, overlay, network=network)) as container:
            result = container.run(Command(["bash", "-c", script], tmp_path / "log", ENV, seconds=60.0, phase="agent"))
        assert result.ended == "exit", (tmp_path / "log").read_text()
        (seen,) = sandbox.seen
        return seen, overlay

    yield run
    real.sandbox.remove(overlay.parent)


def told(seen):
    return {change.path: change.kind for change in seen.changes.found}


def test_owners_modes_and_kinds(watch):
    script = r"""
mkdir -p /app/closed /app/deep; cd /app
echo x >closed/f; ln -s /etc/passwd link; mkfifo fifo; printf x >"$(printf 'line\n\033[2J')"
chown -R 1234:1234 closed; chmod 0 closed/f closed
rm /etc/issue; rm -rf /usr/share/doc; mkdir /usr/share/doc
cd deep; for i in $(seq 300); do mkdir dddddddddd; cd dddddddddd; done; echo x >bottom
"""
    seen, overlay = watch(script)
    found = told(seen)
    assert found["/app/closed/f"] == "file"
    assert (found["/app/link"], found["/app/fifo"], found["/app/line\n\x1b[2J"]) == ("link", "other", "file")
    assert found["/etc/issue"] == "removed"
    assert "/usr/share/doc" in found
    assert any(path.endswith("/bottom") for path in found)
    assert (overlay / "upper/app/closed").lstat().st_mode & 0o777 == 0, "nothing was changed by looking"


def test_the_runtimes_own_files_are_none_of_the_phase(watch):
    assert told(watch("true")[0]) == {}


def test_a_flood_changes_nothing_and_is_bounded(watch):
    script = "for i in $(seq 3000); do echo x >/dev/udp/192.0.2.1/$((i + 1000)); done; echo $? >/app-done"
    seen, _ = watch(script, "public")
    assert len(seen.heard.addresses) == MAX_KEPT
    assert seen.heard.more > 0
    assert told(seen) == {"/app-done": "file"}


def test_traffic_inside_is_not_told(watch):
    script = f"{TOOLBOX}/busybox nc -l -p 8080 >/dev/null & sleep 0.3; echo x >/dev/tcp/127.0.0.1/8080; wait"
    seen, _ = watch(script, "public")
    assert (seen.heard.names, seen.heard.addresses, seen.heard.unheard) == ((), (), "")


def test_without_a_network_nothing_is_claimed(watch):
    seen, _ = watch("echo x >/dev/tcp/192.0.2.1/80")
    assert seen.heard.unheard.startswith("it had no network")


def test_many_files(watch):
    seen, _ = watch("mkdir /many; cd /many; for i in $(seq 200); do echo | tee $i-{1..100} >/dev/null; done")
    assert len([path for path in told(seen) if Path(path).parent == Path("/many")]) == 20_000
