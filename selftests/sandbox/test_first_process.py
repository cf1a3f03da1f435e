"""The script that our first process reads, run by the host's busybox: it is ours, and so are the commands here."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_otval.sandbox.base import Command
from pytest_otval.sandbox.first_process import command_script, first_argv

BUSYBOX = shutil.which("busybox") or "busybox"

DUMP = [BUSYBOX, "env", "-0"]
ALWAYS = {"HOME", "PWD", "SHLVL", "PATH"}
"""PATH only where it is not declared, which no image leaves out."""


def run(argv, env=None, user=None, workdir="/", stdout=None):
    """Return the bytes of the log and the words told to us."""
    command = Command(argv, Path("unused"), env or {}, user, workdir, stdout=stdout)
    script = command_script(command, 7).replace("/.otval/busybox", BUSYBOX)
    with TemporaryDirectory() as folder:
        told = Path(folder, "told")
        begin = f"exec 9>{shlex.quote(str(told))}\n"
        ended = subprocess.run(
            [BUSYBOX, "sh", "-s"],
            input=(begin + script + "wait\n").encode(errors="surrogateescape"),
            capture_output=True,
            env={},
            check=True,
        )
        return ended.stdout, told.read_text().split("\n")[:-1], ended.stderr


def environment_of(env):
    out, told, _ = run(DUMP, env)
    assert "exit 7 0" in told, out
    return dict(pair.split("=", 1) for pair in os.fsdecode(out).split("\0")[:-1])


names = st.one_of(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True),
    st.text(st.characters(exclude_characters="=\0", exclude_categories=["Cs"]), min_size=1, max_size=6),
)
values = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20).filter(
    lambda value: "otval" not in value
)


@given(st.dictionaries(names, values, max_size=4))
@example({"A": "", "B": "x", "b": "\n\n", "HOME": "", "PWD": "/x", "SHLVL": "9", "OLDPWD": "/y"})
@example({"Q": "'\"$(touch /tmp/x)`id`\\", "T": "tab\tnewline\n", "U": "ü\N{SNOWMAN}", "S": "!*?[]{}~#;&|<>"})
@example({"my-var": "a b", "1A": "x", "ä": "'", "a b": "c", "a.b": "$HOME", "-i": "x", "\n": "y"})
@example({"IFS": "/", "PATH": "", "ENV": "/etc/passwd", "PS4": "$(id)", "LD_PRELOAD": "/x.so", "B": "/bin/false"})
@example({"OPTIND": "x", "PPID": "1", "RANDOM": "1", "LINENO": "1", "otval_uid": "5", "otval_home": "/h", "_": "u"})
@example({"HISTFILE": "/x", "FUNCNAME": "f", "CDPATH": "/", "POSIXLY_CORRECT": "", "TERM": "", "LC_ALL": "x"})
def test_every_value_arrives_as_it_is(env):
    found = environment_of(env)
    assert {key: found.get(key) for key in env} == env
    assert set(found) - set(env) <= ALWAYS


def test_nothing_but_what_was_declared():
    declared = {"A": "1", "PATH": "/bin"}
    assert environment_of(declared) == {**declared, "HOME": "/root", "PWD": "/", "SHLVL": "1"}


def test_bytes_of_the_host_that_are_no_text():
    value = os.fsdecode(b"\xff\xfe")
    assert environment_of({"A": value, "b-c": value})["A"] == value


@given(st.lists(values, max_size=5))
def test_every_argument_arrives_as_it_is(args):
    out, told, _ = run([BUSYBOX, "sh", "-c", 'for a in "$@"; do echo -n "$a"; echo -en "\\000"; done', "sh", *args])
    assert out.decode().split("\0")[:-1] == args
    assert "exit 7 0" in told


def test_what_is_told():
    out, told, _ = run([BUSYBOX, "sh", "-c", "echo out; echo err >&2; exit 5"])
    assert out.split() == [b"out", b"err"]
    ended, started = sorted(told)
    assert started.startswith("started 7 ") and started.split()[2].isdigit()
    assert ended == "exit 7 5"


@pytest.mark.parametrize(("argv", "status"), [(["/no/such/program"], 127), (["/etc/passwd"], 126)])
def test_program_that_cannot_run(argv, status):
    _, told, _ = run(argv)
    assert f"exit 7 {status}" in told


def test_command_cannot_talk_to_us():
    """Nor read what we say next: its input is empty, and the line to us is closed."""
    argv = [BUSYBOX, "sh", "-c", "cat; echo exit 7 0 >&9; exit 3"]
    out, told, _ = run(argv)
    assert sorted(told)[0] == "exit 7 3" and len(told) == 2
    assert b"9" in out


def test_stdout_and_stderr_apart_for_streams():
    out, _, err = run([BUSYBOX, "sh", "-c", "echo out; echo err >&2"], stdout=5)
    assert (out, err) == (b"out\n", b"err\n")


@pytest.mark.parametrize("name", ["new", "a b", "it's", "$(x)", "ä", "-n", "new/deeper/still"])
def test_workdir_is_made(tmp_path, name):
    out, told, _ = run([BUSYBOX, "pwd"], workdir=str(tmp_path / name))
    assert out.decode() == f"{tmp_path / name}\n"
    assert "exit 7 0" in told


@pytest.mark.parametrize("name", ["file", "file/below", "'quote'"])
def test_workdir_that_cannot_be(tmp_path, name):
    (tmp_path / "file").write_text("x")
    (tmp_path / "'quote'").write_text("x")
    out, told, _ = run([BUSYBOX, "echo", "ran"], workdir=str(tmp_path / name))
    assert "refused 7" in told
    assert out.decode() == f"the workdir {tmp_path / name} cannot be entered\n"


@pytest.mark.parametrize("user", ["no such user", "'; echo x; '", "$(id)", "no-such:0", "-1", "١"])
def test_user_that_does_not_exist(user):
    out, told, _ = run([BUSYBOX, "echo", "ran"], user=user)
    assert "refused 7" in told
    assert out.decode() == f"there is no user {user.partition(':')[0]} in the image\n"


@pytest.mark.parametrize("user", [None, "", "root", "0", 0, "0:0", "root:root"])
def test_root_needs_no_switch(user):
    """It works where no uid is mapped, and in an image without /etc/passwd."""
    out, told, _ = run([BUSYBOX, "id", "-u"], user=user)
    assert out.decode() == f"{os.getuid()}\n" and "exit 7 0" in told


def test_fakeroot_variables_pass_in_builds_only():
    assert "FAKEROOTKEY" in " ".join(first_argv(keep_fakeroot=True))
    assert "FAKEROOTKEY" not in " ".join(first_argv(keep_fakeroot=False))


def test_each_layer_of_its_own_is_mounted_and_its_folders_are_out_of_sight():
    script = " ".join(first_argv(False, ["/opt/a", "/opt/b c"]))
    assert "/.otval/own-layers/0" in script and "/.otval/own-layers/1" in script
    assert script.index("layer /opt/a") < script.index("umount /.otval/own-layers") < script.index("unshare -U")
    assert "own-layers" not in " ".join(first_argv(False))
