"""bash parses scripts and executes nothing; it says what `bash -n` says, whoever asks and whatever happened before."""

import os
import signal
import subprocess
import time

import pytest

from pytest_otval.checks import bash_syntax
from pytest_otval.checks.bash_syntax import shell_error
from pytest_otval.core import Conclusion

SCRIPTS = [
    "",
    "echo hello",
    "#!/bin/bash\nif true; then\n  echo 1\nfi\n",
    "if true\nfi\n",
    "if true; then fi",
    "echo 'a\nx\n",
    'echo "a\n',
    "cat <<EOF\na\n",
    "case x in\n",
    "echo <((",
    "x=$(if true)\necho $x\n",
    "echo `if`\n",
    "a=(1 2\n",
    "f() {\n  echo 1\n",
    "echo $(( 1 + )\n",
    "for i in 1 2; do echo $i; done }\n",
    "echo \u00e4 \u2603 'open\n",
    "echo 1 ;; echo 2\n",
    "set +n\nif\n",
    "((((((\n" * 100,
]


@pytest.fixture(autouse=True)
def _nothing_known():
    shell_error.cache_clear()


def bash_n(text):
    """What a bash of its own says: the line, and the message."""
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-n"], input=text.encode(), capture_output=True, check=False
    )
    if done.returncode == 0:
        return None
    line, _, message = done.stderr.decode().splitlines()[0].removeprefix("bash: line ").partition(": ")
    return int(line), message


@pytest.mark.parametrize("text", SCRIPTS)
def test_it_says_what_bash_says(text):
    assert shell_error(text) == bash_n(text)


@pytest.mark.parametrize(
    "before", ["", "set +n\n", "set +n; ", "exit 0\n", "}\n", "exec bash\n", "trap 'id' EXIT\n", "\n\n"]
)
def test_nothing_is_executed(tmp_path, before):
    canary = tmp_path / "canary"
    shell_error(f"{before}touch {canary}\necho $(touch {canary}) <(touch {canary})\n$(touch {canary})\n")
    assert shell_error("echo fine") is None
    assert not canary.exists()


def test_a_bash_that_was_killed_is_replaced():
    assert shell_error("echo 1") is None
    os.kill(bash_syntax._bash(os.getpid())._process.pid, signal.SIGKILL)
    assert shell_error("if") is not None


def test_a_forked_process_has_a_bash_of_its_own():
    assert shell_error("echo 2") is None
    ours = bash_syntax._bash(os.getpid())._process.pid
    child = os.fork()
    if child == 0:
        good = shell_error("fi") is not None and bash_syntax._bash(os.getpid())._process.pid != ours
        for bash in (bash_syntax._bash(os.getppid()), bash_syntax._bash(os.getpid())):
            bash.stop()
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert shell_error("done") is not None
    assert bash_syntax._bash(os.getpid())._process.pid == ours


def test_a_script_that_takes_too_long_has_no_answer(monkeypatch):
    monkeypatch.setattr(bash_syntax, "_SERVE", "read -r; : %d; sleep 60")
    monkeypatch.setattr(bash_syntax, "_SECONDS", 0.1)
    bash = bash_syntax._Bash()
    began = time.monotonic()
    assert bash.parse("echo 1") is None
    assert bash._process is None
    assert time.monotonic() - began < 30


def test_without_bash(monkeypatch):
    def missing(*args, **kwargs):
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "Popen", missing)
    with pytest.raises(Conclusion, match="bash is not on this machine") as caught:
        bash_syntax._Bash().parse("echo 1")
    assert caught.value.reason == "missing-tool"
