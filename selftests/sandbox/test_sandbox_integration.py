"""Real containers: what a task sees, what it cannot do, and what is left when it ends."""

import os
import re
import signal
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from pytest_otval.sandbox.base import DEFAULT_PATH, Bind, Command, ContainerSpec, Limits, NoStartError

pytestmark = pytest.mark.integration

MB = 1024 * 1024
PASSWD = "root:x:0:0::/root:/bin/sh\\napp:x:1000:1001::/home/app:/no/such/shell\\n"
GROUP = "root:x:0:\\napp:x:1001:\\nteam:x:1002:app\\n"


@pytest.fixture
def box(real, image, tmp_path):
    """Open containers: ``with box(network=...) as run: run("bash text")`` gives the result and the log's text."""

    @contextmanager
    def open_box(**spec):
        with real.sandbox.open(ContainerSpec(image.files, **spec)) as container:

            def run(text, user=None, workdir="/", seconds=30.0, env=None, argv=None):
                log = tmp_path / "log"
                words = argv or ["/bin/bash", "-c", text]
                env = {"PATH": DEFAULT_PATH} if env is None else env
                result = container.run(Command(words, log, env, user, workdir, seconds))
                return result, log.read_bytes().decode(errors="replace")

            run.container = container
            yield run

    return open_box


@pytest.fixture
def layer(real):
    """A writable layer that outlives its containers."""
    folder = real.scratch.new("layer")
    yield folder
    real.sandbox.remove(folder)


@pytest.fixture
def bound(real):
    """A folder of the host for one container."""
    folder = real.scratch.new("bound")
    folder.chmod(0o777)
    yield folder
    real.sandbox.remove(folder)


def session_of(run):
    """Names of the processes in the runtime's session on the host; dead ones wait for the host's init alone."""
    session = run.container._process.pid
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.name())
    return found


# --- what a command gets ---------------------------------------------------------------------------------------------


def test_environment_is_what_was_declared(box, monkeypatch):
    monkeypatch.setenv("OTVAL_HOST_SECRET", "x")
    with box() as run:
        declared = {"PATH": "/usr/bin", "A": "two\nlines", "B": "'\"$x", "my-var": "odd", "IFS": "/"}
        _, text = run("", env=declared, argv=["/usr/bin/env", "-0"])
        found = dict(pair.split("=", 1) for pair in text.split("\0")[:-1])
        assert found.pop("SHLVL")
        assert found == {**declared, "HOME": "/root", "PWD": "/"}


@pytest.mark.parametrize(
    "env", [{"HOME": "/h"}, {"B": "/bin/false", "IFS": "/", "otval_uid": "0", "otval_name": "root"}]
)
def test_environment_of_users(box, real, env):
    if not real.sandbox.maps_uids:
        pytest.skip("users cannot be mapped here")
    with box() as run:
        run(f"printf '{PASSWD}' > /etc/passwd; printf '{GROUP}' > /etc/group")
        declared = {"PATH": "/usr/bin:/bin", **env}
        for user, uid, home in (("app", "1000", "/home/app"), ("7", "7", "/"), ("app:0", "1000", "/home/app")):
            _, text = run("", env=declared, user=user, argv=["/usr/bin/env", "-0"])
            found = dict(pair.split("=", 1) for pair in text.split("\0")[:-1])
            assert found.pop("SHLVL")
            assert found == {"HOME": home, **declared, "PWD": "/"}
            assert run("id -u", user=user, env=declared)[1] == f"{uid}\n"


@pytest.mark.parametrize(
    ("user", "ids"),
    [
        (None, "uid=0 gid=0 groups=0"),
        ("root", "uid=0 gid=0 groups=0"),
        ("app", "uid=1000 gid=1001 groups=1001,1002"),
        (1000, "uid=1000 gid=1001 groups=1001,1002"),
        ("app:team", "uid=1000 gid=1002 groups=1002"),
        ("app:7", "uid=1000 gid=7 groups=7"),
        (4321, "uid=4321 gid=0 groups=0"),
        ("4321:1002", "uid=4321 gid=1002 groups=1002"),
    ],
)
def test_users(box, real, user, ids):
    if user not in (None, "root") and not real.sandbox.maps_uids:
        pytest.skip("users cannot be mapped here")
    with box() as run:
        run(f"printf '{PASSWD}' > /etc/passwd; printf '{GROUP}' > /etc/group")
        _, text = run('echo "uid=$(id -u) gid=$(id -g) groups=$(id -G | tr " " ,)"', user=user)
        groups = "groups=" + ",".join(sorted(set(text.strip().rpartition("groups=")[2].split(","))))
        assert f"{text.split(' groups=')[0]} {groups}" == ids


def test_user_that_does_not_exist(box):
    with box() as run:
        result, text = run("echo ran", user="nobody-at-all")
        assert (result.ended, result.status) == ("refused", None)
        assert text == "there is no user nobody-at-all in the image\n"


def test_workdir_is_made_or_refused(box):
    with box() as run:
        assert run("pwd", workdir="/new/deep er")[1] == "/new/deep er\n"
        result, text = run("pwd", workdir="/etc/passwd/x")
        assert result.ended == "refused"
        assert "/etc/passwd/x" in text


def test_names_and_numbers_of_the_machine(box):
    with box(limits=Limits(cpus=1)) as run:
        assert run("hostname; nproc; echo $$ $PPID > /dev/null; ls /proc | grep -c '^[0-9]'")[1].split()[:2] == [
            "task",
            "1",
        ]
        assert run("readlink /proc/self/exe; cat; echo $?")[1].split()[-1] == "0"


def test_status_and_output(box):
    with box() as run:
        for status in (0, 1, 7, 126, 127, 255):
            result, text = run(f"echo out; echo err >&2; exit {status}")
            assert (result.ended, result.status, text) == ("exit", status, "out\nerr\n")
        assert run("kill -9 $$")[0].status == 137
        assert not run("", argv=["/no/such/program"])[0].ok


def test_output_is_capped_and_may_be_anything(box):
    with box(limits=Limits(log_bytes=MB)) as run:
        result, text = run("head -c 200000000 /dev/zero; echo the end")
        assert (result.ended, result.status) == ("exit", 0)
        assert text.endswith("the end\n")
        assert len(text) < MB + 100
        assert re.search(r"\[otval: \d+ bytes left out here\]", text)
        result, text = run(r"printf '\xff\xfe\x00\x1b[31m'; exit 3")
        assert (result.status, text) == (3, "\ufffd\ufffd\0\x1b[31m")


# --- limits ----------------------------------------------------------------------------------------------------------


def test_time_limit_kills_everything(box):
    with box() as run:
        result, text = run("echo begun; trap '' TERM INT HUP; sleep 1000 & sleep 1000", seconds=3.0)
        assert (result.ended, result.status, text) == ("timeout", None, "begun\n")
        assert 3.0 <= result.seconds < 1000
        assert session_of(run) == []


def test_memory_limit(box):
    with box(limits=Limits(memory_mb=100)) as run:
        assert run("head -c 20M /dev/zero | tail -c 10M > /dev/null")[0].ok
        result, _ = run("x=$(head -c 300M /dev/zero | tr '\\0' x); sleep 30")
        assert (result.ended, result.status) == ("memory", None)
        assert session_of(run) == []


@pytest.mark.parametrize("goes_on", [True, False])
def test_storage_limit(box, goes_on):
    with box(limits=Limits(storage_mb=20)) as run:
        assert run("head -c 1M /dev/zero > /tmp/x")[0].ok
        result, _ = run("head -c 60M /dev/zero > /var/tmp/y" + ("; sleep 30" if goes_on else ""))
        assert (result.ended, result.status) == ("storage", None)


# --- the end of a command --------------------------------------------------------------------------------------------


def test_daemon_that_holds_the_output_is_not_waited_for(box):
    with box() as run:
        result, text = run("setsid sleep 1000 & echo done")
        assert (result.ended, result.status, result.left_alive, text) == ("exit", 0, 1, "done\n")
        assert result.seconds < 1000
        assert run("echo next")[1] == "next\n"


@pytest.mark.parametrize("text", ["kill -9 $PPID; exit 5", "kill -9 $PPID; sleep 1; exit 5", "kill -KILL -1; exit 5"])
def test_recorder_that_is_killed_is_an_end_without_status(box, text):
    with box() as run:
        result, _ = run(text)
        assert result.ended == "exit"
        assert result.status in (None, 5, 137)
        assert not result.ok


def test_bash_that_is_gone(box):
    with box() as run:
        assert run("rm -f /bin/bash /usr/bin/bash /bin/sh /usr/bin/env; exit 4")[0].status == 4
        assert run("", argv=["/.otval/sh", "-c", "exit 6"])[0].status == 6


def test_nothing_is_alive_after_the_end(box, real):
    with box() as run:
        run("for i in 1 2 3; do setsid sleep 1000 & done; nohup sleep 1000 & disown -a")
        assert len(session_of(run)) >= 4
    assert session_of(run) == []


def test_kill_of_the_runtime_is_told(box):
    with box() as run:
        run("echo")
        session = run.container._process.pid
        runtime = [
            found.pid for found in psutil.Process(run.container.init_pid).parents() if os.getsid(found.pid) == session
        ]
        pid = os.fork()
        if pid == 0:
            time.sleep(1)
            for victim in reversed(runtime):
                os.kill(victim, signal.SIGKILL)
            os._exit(0)
        result, _ = run("sleep 30")
        os.waitpid(pid, 0)
        assert (result.ended, result.status) == ("killed", None), runtime
    deadline = time.monotonic() + 10
    while session_of(run) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert session_of(run) == []


# --- walls -----------------------------------------------------------------------------------------------------------


def test_no_network(box):
    with box() as run:
        assert run("cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '")[1] == "lo\n"
        assert run("cat /proc/net/route | wc -l")[1] == "1\n"


NC = "/.otval/busybox nc"


def test_own_loopback(box):
    with box() as first, box() as second:
        first(f"{NC} -l -p 8765 -e /bin/echo hello &\nsleep 0.3")
        assert second(f"{NC} -w 2 127.0.0.1 8765 </dev/null")[1] != "hello\n"
        assert first(f"{NC} -w 2 127.0.0.1 8765 </dev/null")[1] == "hello\n"


def test_service_of_the_host_is_out_of_reach(box):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server, box() as run:
        result, _ = run(f"{NC} -w 2 127.0.0.1 {server.getsockname()[1]} </dev/null")
        assert not result.ok


def test_public_network_is_its_own_namespace(box, real):
    if not real.allow_public:
        pytest.skip("the profile has no public network")
    with box(network="public") as run:
        _, text = run(
            "cat /etc/resolv.conf; awk '$2 == \"00000000\" {print $1}' /proc/net/route; cut -d: -f1 /proc/net/dev"
        )
        assert "nameserver 10.0.2.3" in text
        assert "tap0" in text.split("nameserver")[1]
        assert "eth0" not in text


HOST = Path("/proc/sys/kernel/core_pattern")


def test_root_has_no_power_over_the_host(box):
    kernel = {
        path: path.read_text() for path in (HOST, Path("/proc/sys/kernel/hostname"), Path("/proc/sys/vm/swappiness"))
    }
    with box() as run:
        for text in (
            "umount /.otval",
            "umount -l /.otval",
            "umount -l /proc/sys",
            "mount -o remount,rw /.otval",
            "mount -o remount,rw,bind /proc/sys",
            "mount -o remount,rw /proc",
            "echo '|/x' > /proc/sys/kernel/core_pattern",
            "echo x > /.otval/x",
            "rm -f /.otval/busybox",
            "mv /.otval /elsewhere",
            "echo b > /proc/sysrq-trigger",
            "ls -l /dev | grep ^b",
            "mknod /x b 8 0 && dd if=/x of=/dev/null count=1",
        ):
            assert not run(text)[0].ok, text
        run("echo other > /proc/sys/kernel/hostname; echo 1 > /proc/sys/vm/swappiness; hostname other")
        assert run("/.otval/busybox echo whole")[1] == "whole\n"
    assert {path: path.read_text() for path in kernel} == kernel


def test_own_mounts_under_the_walls_lift_nothing(box):
    with box() as run:
        inner = "umount -l /.otval; mount -o remount,rw /proc/sys; echo x > /proc/sys/kernel/core_pattern"
        assert not run(f"unshare -Urm sh -c '{inner}'")[0].ok
        text = "mkdir /p && mount -t proc proc /p && echo '|/x' > /p/sys/kernel/core_pattern"
        before = HOST.read_text()
        run(text)
        assert HOST.read_text() == before


def test_processes_of_the_host_are_not_seen(box):
    with box() as run:
        _, text = run("cat /proc/[0-9]*/comm")
        assert len(text.split()) < 12
        assert "pytest" not in text
        assert not run(f"kill -0 {os.getpid()}")[0].ok or os.getpid() < 20


def test_files_of_the_host_are_not_seen(box, tmp_path):
    (tmp_path / "secret").write_text("x")
    with box() as run:
        for path in (tmp_path / "secret", Path(__file__), Path.home() / "x", tmp_path):
            assert not run(f"ls {path}")[0].ok, path
        assert run("ls -A /root /tmp /var/tmp /home | grep -v -e : -e bashrc -e profile -e '^$'")[1] == ""


def test_squashfs_bind_stays_read_only(box, real, image):
    digest = image.files[0].stat()
    with box(binds=[Bind(image.files[0], "/opt/runtime", "squashfs")]) as run:
        assert run("ls /opt/runtime/bin/ls")[0].ok
        run("mount -o remount,rw /opt/runtime; mount -o remount,rw,bind /opt/runtime; umount /opt/runtime")
        assert not run("echo x > /opt/runtime/x")[0].ok
        assert not run("rm -f /opt/runtime/bin/ls")[0].ok
        assert run("ls /opt/runtime/bin/ls")[0].ok
    assert image.files[0].stat() == digest


def test_folder_bind_is_its_own_and_nothing_else(box, bound):
    with box(binds=[Bind(bound, "/logs/verifier")]) as run:
        assert run("echo 1 > /logs/verifier/reward.txt; ln -s /etc/passwd /logs/verifier/link")[0].ok
        assert run("ls /logs")[1] == "verifier\n"
    assert (bound / "reward.txt").read_text() == "1\n"
    assert os.readlink(bound / "link") == "/etc/passwd"


# --- what containers leave -------------------------------------------------------------------------------------------


def test_layer_is_seen_by_the_next_container(box, layer):
    with box(overlay=layer) as run:
        run("echo kept > /tmp/x; echo kept > /var/tmp/x; rm /etc/debian_version; echo gone > /dev/shm/x; mkdir /new")
    with box(overlay=layer) as run:
        assert run("cat /tmp/x /var/tmp/x; ls -d /new; ls /etc/debian_version /dev/shm/x 2>/dev/null")[1].split() == [
            "kept",
            "kept",
            "/new",
        ]
    with box() as run:
        assert run("ls /etc/debian_version")[0].ok, "another layer has nothing of it"


def test_what_others_cannot_read_can_be_read_and_removed(box, real, bound):
    with box(binds=[Bind(bound, "/out")]) as run:
        user = 1234 if real.sandbox.maps_uids else None
        result, text = run("umask 077; mkdir /out/d && echo secret > /out/d/f && chmod 000 /out/d/f /out/d", user=user)
        assert result.ok, text
        run("mkdir /root/locked; touch /root/locked/x; chmod 000 /root/locked")
    real.sandbox.make_readable(bound)
    assert (bound / "d" / "f").read_text() == "secret\n"
    assert real.sandbox.size(bound) > 0


def test_image_that_is_none(real, tmp_path):
    (tmp_path / "image.sqfs").write_bytes(b"no image")
    with pytest.raises(NoStartError) as caught, real.sandbox.open(ContainerSpec((tmp_path / "image.sqfs",))):
        pass
    assert str(caught.value)


def test_environment_larger_than_a_socket_holds(box):
    env = {f"LONG{number}": "x" * 100_000 for number in range(8)}
    with box() as run:
        result, text = run("echo ${#LONG7}", env=env)
    assert (result.status, text) == (0, "100000\n")


def test_failed_starts_leave_no_descriptor(real, tmp_path):
    (tmp_path / "no.sqfs").write_bytes(b"nothing")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(NoStartError), real.sandbox.open(ContainerSpec((tmp_path / "no.sqfs",))):
            pass
    # What other tests left open may be closed meanwhile.
    assert len(os.listdir("/proc/self/fd")) <= before
