"""setup.sh with a stand-in for Python, pip and the programs of the machine: what it does when, not what they do."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import tomli

from pytest_otval.cluster.site_shell import site_shell
from pytest_otval.profile import Profile
from pytest_otval.workspace import FOLDERS

CHECKOUT = Path(__file__).parents[1]

PYTHON = """#!/bin/sh
# Stands in for python3 and for the environment's python; writes down what it was asked for.
echo "$*" >>"$STAND_IN_LOG"
case "$1 $2" in
    "-c import os, sys"*) echo "$STAND_IN_PYTHON" ;;
    "-c import ensurepip"*) ;;
    "-c "*) echo "3.11 of the tests" ;;
    "-m pytest_otval") [ "$3" != environment ] || printf '%s' "${STAND_IN_SITE-}" ;;
    "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && : >"$3/pyvenv.cfg" ;;
    "-m pip") case "$*" in *"${STAND_IN_FAILS:-nothing}"*) exit 3 ;; esac ;;
esac
"""
CALLED_BY_SETUP = (
    *("bash", "sh", "cat", "chmod", "cp", "cut", "dirname", "basename", "env", "flock", "id", "ls", "mkdir", "mktemp"),
    *("mv", "rm", "sed", "sha256sum", "stat"),
)
PROGRAMS = (
    "apptainer",
    "mksquashfs",
    "squashfuse",
    "fuse-overlayfs",
    "fakeroot",
    "slirp4netns",
    "newuidmap",
    "busybox",
    "mmdebstrap",
)


class SetUp:
    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "check out"
        self.workspace = folder / "work 'space"
        self.cwd = folder / "elsewhere"
        self.log = folder / "log"
        bin_folder = folder / "bin"
        for new in (self.checkout / "scripts", self.cwd, bin_folder):
            new.mkdir(parents=True)
        shutil.copy(CHECKOUT / "setup.sh", self.checkout)
        for name in ("requirements.txt", "requirements-minimal.txt", "pyproject.toml"):
            (self.checkout / name).write_text(f"{name}\n")
        _program(self.checkout / "scripts" / "install-apptainer.sh", "#!/bin/sh\n")
        _program(bin_folder / "python3", PYTHON)
        for name in PROGRAMS:
            _program(bin_folder / name, "#!/bin/sh\n")
        self.bin = bin_folder
        self.env = {
            "HOME": str(folder),
            "PATH": f"{bin_folder}:/usr/bin:/bin",
            "STAND_IN_LOG": str(self.log),
            "STAND_IN_PYTHON": str(bin_folder / "python3"),
        }

    @property
    def env_file(self) -> Path:
        return self.checkout / "env.sh"

    @property
    def stamp(self) -> Path:
        return self.workspace / "envs" / "prep" / ".otval-packages"

    def run(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run setup.sh and forget what earlier runs wrote to the log."""
        self.log.write_text("")
        return subprocess.run(
            [str(self.checkout / "setup.sh"), *arguments],
            cwd=self.cwd,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def complete(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        result = self.run(str(self.workspace), "--cluster", "local", *arguments, **env)
        assert result.returncode == 0, result.stderr
        return result

    def calls(self, word: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if word in line]


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def setup(tmp_path) -> SetUp:
    return SetUp(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "WORKSPACE is missing"),
        (["w"], "--cluster NAME is missing"),
        (["w", "--cluster"], "--cluster needs a value"),
        (["w", "x", "--cluster", "local"], "more than one WORKSPACE: x"),
        (["w", "--clutser", "local"], "unknown option --clutser"),
    ],
)
def test_wrong_usage_is_one_line_and_status_4(setup, arguments, says):
    result = setup.run(*arguments)
    assert result.returncode == 4
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (setup.cwd / "w").exists()


def test_help_needs_nothing(setup):
    result = setup.run("--help")
    assert result.returncode == 0
    assert result.stdout.startswith("usage: ./setup.sh WORKSPACE --cluster NAME")


def test_it_makes_workspace_and_environment_from_the_lock(setup):
    setup.complete()
    assert {path.name for path in setup.workspace.iterdir()} == {*FOLDERS, "env.sh"}
    (packages, project) = setup.calls("-m pip install")
    assert "--require-hashes --only-binary :all:" in packages
    assert packages.endswith("requirements.txt")
    assert "--no-index --no-deps --no-build-isolation --editable" in project
    assert len(setup.calls("-m pytest_otval image prepare")) == 1


def test_minimal_takes_the_minimal_lock(setup):
    setup.complete("--minimal")
    assert setup.calls("--require-hashes")[0].endswith("requirements-minimal.txt")


def test_a_second_run_installs_nothing(setup):
    setup.complete()
    setup.complete()
    assert setup.calls("-m pip") == []
    assert setup.calls("-m venv") == []


def test_another_lock_makes_the_environment_anew(setup):
    setup.complete()
    left_over = setup.stamp.parent / "left-over"
    left_over.touch()
    (setup.checkout / "requirements.txt").write_text("other\n")
    setup.complete()
    assert len(setup.calls("--require-hashes")) == 1
    assert not left_over.exists()


def test_another_pyproject_installs_the_checkout_again_without_the_network(setup):
    setup.complete()
    (setup.checkout / "pyproject.toml").write_text("other\n")
    setup.complete()
    (only,) = setup.calls("-m pip")
    assert "--no-index" in only


@pytest.mark.parametrize("breaks", ["--require-hashes", "--editable"])
def test_what_an_interrupted_run_left_is_not_trusted(setup, breaks):
    failed = setup.run(str(setup.workspace), "--cluster", "local", STAND_IN_FAILS=breaks)
    assert failed.returncode == 3
    assert not setup.env_file.exists()
    setup.complete()
    assert len(setup.calls(breaks)) == 1


def test_the_command_runs_where_the_caller_is_and_gives_its_status(setup):
    result = setup.run(
        str(setup.workspace),
        "--cluster",
        "local",
        "--",
        "sh",
        "-c",
        'pwd; echo "$OT_CLUSTER"; echo "$OT_WORKSPACE"; exit 7',
    )
    assert result.returncode == 7
    assert result.stdout.splitlines() == [str(setup.cwd), "local", str(setup.workspace)]


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_env_file_works_in_a_bare_shell_and_twice(setup, shell):
    setup.complete()
    script = f'set -eu; unset PATH; . "{setup.env_file}"; . "{setup.env_file}"; echo "$OT_PREP_ENV"; echo "$PATH"'
    shown = subprocess.run([shutil.which(shell), "-c", script], env={}, capture_output=True, text=True, check=True)
    environment = setup.workspace / "envs" / "prep"
    assert shown.stdout.splitlines() == [str(environment), f"{environment}/bin"]


def test_an_environment_elsewhere(setup, tmp_path):
    elsewhere = tmp_path / "fast" / "prep"
    setup.complete(OT_PREP_ENV=str(elsewhere))
    assert (elsewhere / "pyvenv.cfg").exists()
    assert not (setup.workspace / "envs" / "prep").exists()


def test_what_another_env_file_exported_is_no_choice(setup, tmp_path):
    other = tmp_path / "other"
    setup.complete(OT_WORKSPACE=str(other), OT_PREP_ENV=f"{other}/envs/prep")
    assert setup.stamp.exists()
    assert not other.exists()


def test_a_folder_that_is_no_environment_is_left_alone(setup, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis").touch()
    result = setup.run(str(setup.workspace), "--cluster", "local", OT_PREP_ENV=str(precious))
    assert result.returncode == 1
    assert "is not empty and no Python environment" in result.stderr
    assert (precious / "thesis").exists()


def test_without_a_new_enough_python_it_says_so(setup):
    result = setup.run(str(setup.workspace), "--cluster", "local", "--python", "/bin/false")
    assert result.returncode == 1
    assert "no Python >= 3.11 found at /bin/false" in result.stderr
    assert not setup.workspace.exists()


def test_on_a_cluster_missing_programs_are_named(setup):
    (setup.bin / "apptainer").unlink()
    setup.env["PATH"] = _path_without_apptainer(setup)
    result = setup.run(str(setup.workspace), "--cluster", "site")
    assert result.returncode == 1
    assert "missing on this machine: apptainer; load the site's modules" in result.stderr
    assert not setup.env_file.exists()
    assert not list(setup.checkout.glob(".env.sh*"))


def test_on_a_cluster_what_is_merely_helpful_may_be_missing(setup):
    """No recipe is made there, and Apptainer brings programs of its own that are not on PATH."""
    for name in ("mmdebstrap", "slirp4netns"):
        (setup.bin / name).unlink()
    setup.env["PATH"] = _path_without_apptainer(setup)
    result = setup.run(str(setup.workspace), "--cluster", "site")
    assert result.returncode == 0, result.stderr
    assert "warning: missing on this machine: slirp4netns mmdebstrap" in result.stderr


MODULES = """
module() {
    echo "module $*" >>"$STAND_IN_LOG"
    PATH=$MODULE_BIN:$PATH
}
"""


def test_on_a_cluster_programs_come_by_modules(setup, tmp_path):
    """They are loaded by set-up itself and by env.sh, behind the environment on PATH."""
    modules = tmp_path / "modules"
    modules.mkdir()
    (setup.bin / "apptainer").rename(modules / "apptainer")
    setup.env["PATH"] = _path_without_apptainer(setup)
    (tmp_path / "init").write_text(MODULES)
    site = site_shell(_profile(f"[modules]\nload = ['apptainer/1.4']\ninit = ['{tmp_path}/init']"))
    settings = {"STAND_IN_SITE": site, "MODULE_BIN": str(modules)}
    result = setup.run(str(setup.workspace), "--cluster=site", "--", "sh", "-c", 'echo "$PATH"', **settings)
    assert result.returncode == 0, result.stderr
    assert setup.calls("module") == ["module load apptainer/1.4"]
    environment = setup.workspace / "envs/prep/bin"
    assert result.stdout.startswith(f"{environment}:{modules}:")
    assert (setup.workspace / "env.sh").read_text() == setup.env_file.read_text()


@pytest.mark.skipif(os.getuid() != 0, reason="only root installs")
def test_as_root_on_one_machine_what_is_missing_is_installed(setup):
    (setup.bin / "apptainer").unlink()
    setup.env["PATH"] = _path_without_apptainer(setup)
    installer = setup.checkout / "scripts" / "install-apptainer.sh"
    _program(
        installer, f"#!/bin/sh\nprintf '#!/bin/sh\\n' >'{setup.bin}/apptainer'; chmod 755 '{setup.bin}/apptainer'\n"
    )
    setup.complete()
    assert (setup.bin / "apptainer").exists()


@pytest.mark.skipif(os.getuid() == 0, reason="root installs")
def test_an_ordinary_user_is_told_what_to_ask_for(setup):
    (setup.bin / "apptainer").unlink()
    setup.env["PATH"] = _path_without_apptainer(setup)
    result = setup.run(str(setup.workspace), "--cluster", "local")
    assert result.returncode == 1
    assert f"run: sudo '{setup.checkout}/scripts/install-apptainer.sh'" in result.stderr


def _profile(text: str) -> Profile:
    return Profile(name="site", **tomli.loads(text))


def _path_without_apptainer(setup: SetUp) -> str:
    """PATH with links to what setup.sh itself calls, so that the machine's apptainer is not found."""
    for name in CALLED_BY_SETUP:
        (setup.bin / name).symlink_to(shutil.which(name) or name)
    return str(setup.bin)


def test_the_command_pytest_passes_over_ini_files_of_tasks(setup):
    """A new pytest would bring its own command; the next set-up has the last word."""
    setup.complete()
    command = setup.workspace / "envs/prep/bin/pytest"
    command.write_text("from pytest import console_main\n")
    setup.complete()
    setup.log.write_text("")
    subprocess.run([command, "a b", "-k", "x'y"], env=setup.env, check=True)
    assert setup.calls("pytest") == ["-P -m pytest_otval.glue.start a b -k x'y"]
