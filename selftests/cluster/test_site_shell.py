"""The part of env.sh that is a site's, run by real shells with a stand-in for ``module``, and with none."""

import shutil
import subprocess

import pytest
import tomli

from pytest_otval.cluster.site_shell import site_shell
from pytest_otval.profile import PACKAGED, Profile, load_profile

MODULE = 'module() { echo "$*"; [ "$2" != broken ] && [ "$UNSET_FOR_SURE" = "" ]; }'
SHELLS = [shell for shell in ("sh", "bash", "dash", "zsh") if shutil.which(shell)]


def _profile(text: str) -> Profile:
    return Profile(name="site", **tomli.loads(text))


def _run(shell: str, script: str, **env: str) -> subprocess.CompletedProcess[str]:
    # A shell's own way to be as careful as it can.
    argv = [shutil.which(shell), "-c", f"set -eu\n{script}\necho end $-"]
    result = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    *_, last = result.stdout.splitlines()
    assert last.startswith("end ")
    assert {"e", "u"} <= set(last.removeprefix("end "))
    return result


def test_a_profile_that_says_nothing_adds_nothing():
    assert site_shell(load_profile("local", PACKAGED.parent)) == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_modules_are_loaded_in_order_and_one_that_is_missing_is_told(shell):
    lines = site_shell(_profile("[modules]\nload = ['gcc/13', 'broken', 'cuda/12.8.1']"))
    result = _run(shell, MODULE + "\n" + lines)
    assert result.stdout.splitlines()[:-1] == ["load gcc/13", "load broken", "load cuda/12.8.1"]
    assert result.stderr == "env.sh: the module broken cannot be loaded\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_without_module_the_files_that_define_it_are_sourced(shell, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text('false; echo "first $UNSET_FOR_SURE"\n')
    second.write_text(MODULE + "\n")
    text = f"[modules]\nload = ['cuda']\ninit = ['{first}', '{tmp_path}/missing', '{second}']"
    lines = site_shell(_profile(text))
    assert _run(shell, lines).stdout.splitlines()[:-1] == ["first ", "load cuda"]
    # With it they are not: a second time in the same shell, only the module is loaded.
    assert _run(shell, lines + lines).stdout.splitlines()[:-1] == ["first ", "load cuda", "load cuda"]


@pytest.mark.parametrize("shell", SHELLS)
def test_without_any_module_command_it_says_what_is_not_loaded(shell):
    result = _run(shell, site_shell(_profile("[modules]\nload = ['cuda', 'gcc']\ninit = ['/nonexistent']")))
    assert result.stderr == "env.sh: there is no command module, so these are not loaded: cuda gcc\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_storage_names_are_those_of_the_site(shell, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    text = f"""
    storage.work = {{ variable = "WORK", exports = "OT_STORAGE_WORK", purpose = "x" }}
    storage.archive = {{ variable = "VAULT", exports = "OT_STORAGE_ARCHIVE", purpose = "x" }}
    storage.here = {{ path = "{here}", exports = "OT_STORAGE_HERE", purpose = "x" }}
    storage.gone = {{ path = "{tmp_path}/gone", exports = "OT_STORAGE_GONE", purpose = "x" }}
    """
    env = {"WORK": "/work/a 'b'", "OT_STORAGE_ARCHIVE": "of another node", "PATH": "/usr/bin:/bin"}
    shown = _run(shell, site_shell(_profile(text)) + "env", **env).stdout.splitlines()
    assert sorted(line for line in shown if line.startswith("OT_STORAGE_")) == [
        f"OT_STORAGE_HERE={here}",
        "OT_STORAGE_WORK=/work/a 'b'",
    ]


@pytest.mark.parametrize("name", sorted(file.stem for file in PACKAGED.glob("*.toml")))
def test_what_packaged_profiles_write_is_clean_shell(name, tmp_path):
    script = tmp_path / "site.sh"
    script.write_text("#!/bin/sh\n" + site_shell(load_profile(name, PACKAGED.parent)))
    # What is sourced is a site's; a list of modules may have one.
    result = subprocess.run(["shellcheck", "-e", "SC1090,SC2043", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


@pytest.mark.integration
def test_a_job_has_what_set_up_had(localslurm):
    """Nothing of the submitter's environment reaches it, and there is no ``module`` before a login shell."""
    (localslurm.shared / "init").write_text(MODULE + "\n")
    (localslurm.shared / "env.sh").write_text(
        site_shell(
            _profile(f"""
            modules = {{ load = ["cuda/12.8.1"], init = ["{localslurm.shared}/init"] }}
            storage.scratch = {{ variable = "TMPDIR", exports = "OT_STORAGE_SCRATCH", purpose = "x" }}
            """)
        )
    )
    job = localslurm.submit(f'. {localslurm.shared}/env.sh; echo "$OT_STORAGE_SCRATCH"')
    localslurm.wait_for(job, "COMPLETED")
    assert localslurm.output(job).splitlines() == ["load cuda/12.8.1", f"/tmp/job.{job}"]
