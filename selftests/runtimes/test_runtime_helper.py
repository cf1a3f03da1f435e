"""The helper that scripts source, run by the host's shells: it is ours, and so are the scripts here."""

import shlex
import shutil
import subprocess

import pytest

from pytest_otval.runtimes.mount import tell
from pytest_otval.sandbox.toolbox import SCRIPTS

SHELLS = [shell for shell in (["bash"], ["sh"], ["busybox", "sh"]) if shutil.which(shell[0])]


@pytest.fixture(params=SHELLS, ids=" ".join)
def run(request, tmp_path):
    """Run a script that sources the helper; ``state`` as the container is told, None where there is no container."""

    def of(script, state=None, *words, head=""):
        told = tmp_path / "told"
        if state is not None:
            tell(told, "tools", str(tmp_path / "runtime"), state, "it isn't there")
        helper = tmp_path / "bin" / "ot-runtime.sh"
        helper.parent.mkdir(exist_ok=True)
        text = (SCRIPTS / "ot-runtime.sh").read_text()
        helper.write_text(text.replace("/.otval-runtime", str(told)).replace("/opt/otval", str(tmp_path / "opt")))
        file = tmp_path / "setup.sh"
        file.write_text(f"{head}\nPATH={shlex.quote(str(helper.parent))}:$PATH\n. ot-runtime.sh\n{script}\n")
        ended = subprocess.run([*request.param, file, *words], capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout, ended.stderr

    return of


INSTALL = 'ot_runtime tools || { echo x > "$OT_RUNTIME/file"; ot_runtime_save; echo after; }\necho "end $OT_RUNTIME"'


def test_ready(run, tmp_path):
    assert run(INSTALL, "ready") == (0, f"end {tmp_path}/runtime\n", "ot-runtime: tools comes from the cache\n")
    assert not (tmp_path / "runtime").exists()


def test_missing_is_installed_and_told(run, tmp_path):
    status, out, said = run(INSTALL, "missing")
    assert (status, out) == (0, f"after\nend {tmp_path}/runtime\n")
    assert said == "ot-runtime: tools is installed now: it isn't there\n"
    assert (tmp_path / "told" / "done").exists()
    assert (tmp_path / "runtime" / "file").exists()


def test_save_ends_the_script(run, tmp_path):
    assert run(INSTALL, "save")[:2] == (0, "")
    assert (tmp_path / "told" / "done").exists()


@pytest.mark.parametrize("state", ["missing", "save"])
def test_a_failed_installation_is_never_told_as_done(run, tmp_path, state):
    script = "ot_runtime tools || { false; touch $OT_RUNTIME/late; ot_runtime_save; }"
    head = "set -e" if state == "missing" else ""
    assert run(script, state, head=head)[0] == 1
    assert not (tmp_path / "told" / "done").exists()
    assert not (tmp_path / "runtime" / "late").exists()


def test_elsewhere_it_installs(run, tmp_path):
    status, out, _ = run(INSTALL)
    assert (status, out) == (0, f"after\nend {tmp_path}/opt/runtimes/tools\n")


def test_another_name_than_expected(run):
    status, _, said = run("ot_runtime other || exit 0", "ready")
    assert status == 1
    assert "'tools', not for 'other'" in said


def test_saving_by_hand_hands_over_to_the_program(run, tmp_path):
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    assert run("echo never", None, "--save") == (0, f"-m pytest_otval runtime build {tmp_path}\n", "")
