"""Runtimes in real containers: private to a trial, out of the agent's reach, never changed."""

import hashlib
from functools import partial

import pytest

from pytest_otval.runtimes.record import TASK_JSON, VERIFIER_JSON, squashfs_path
from pytest_otval.sandbox import first_process
from pytest_otval.sandbox.base import TOOLBOX, Bind, Command, ContainerSpec
from selftests.fakes import make_task
from selftests.runtimes.conftest import POISON, POISONED, name_runtime, write_wheel

pytestmark = pytest.mark.integration

ROOT = "/opt/otval/runtimes/python-verifier"
INSTALL = "-I -m pip install --quiet --no-index --no-deps --root-user-action ignore"
REWARD = "/logs/verifier/reward.txt"
PASSES = "mkdir -p /app && echo 42 > /app/answer.txt"
GRADES = f"""
cat > /tmp/test_answer.py <<'TEXT'
def test_answer():
    assert open("/app/answer.txt").read().strip() == "42"
TEXT
"$OT_PYTHON" -I -m pytest -q -p no:cacheprovider -c /dev/null --noconftest --rootdir=/tmp \\
    --junitxml=/logs/verifier/junit.xml --ctrf=/logs/verifier/ctrf.json /tmp/test_answer.py
[ -s /logs/verifier/ctrf.json ] && grep -q 'tests="1"' /logs/verifier/junit.xml &&
    grep -q 'failures="0"' /logs/verifier/junit.xml && echo 1 > {REWARD} || echo 0 > {REWARD}
"""


@pytest.fixture
def task_of(tmp_path, verifier_runtime):
    """Make a task whose verifier has the runtime."""

    def make(solve=PASSES, test=GRADES, agent=False, verifier=True, **files):
        task = make_task(tmp_path, solve, test, **files)
        if verifier:
            name_runtime(task.path / "tests" / VERIFIER_JSON, verifier_runtime)
        if agent:
            name_runtime(task.path / "setup_files" / TASK_JSON, verifier_runtime)
        return task

    return make


@pytest.fixture
def digest(real, verifier_runtime):
    """Return a function that reads the cached file anew."""
    path = squashfs_path(real.runtimes.cache, verifier_runtime.checksum)
    return lambda: hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def sealed(mounted, verifier_runtime):
    """Run shell in a container that has the verifier's runtime."""
    return partial(mounted, verifier_runtime)


# --- a verifier's ---


def test_verifier_grades_with_its_runtime(ask_real, task_of, verifier_runtime):
    task = task_of()
    result = ask_real("oracle", task)
    assert (result.reason, result.facts["score"]) == ("expected", 1.0), result.log
    assert result.facts["runtimes"] == [f"{verifier_runtime.id}@sha256:{verifier_runtime.checksum}"]
    assert ask_real("noop", task).reason == "expected"


def test_what_a_verifier_installs_is_gone_in_the_next_trial(ask_real, task_of, digest):
    before = digest()
    python = '"$OT_PYTHON"'
    test = f"""
{python} -I -c 'import mine' 2>/dev/null && exit
{python} {INSTALL} /tests/mine-1-py3-none-any.whl && rm "$OT_RUNTIME/bin/git" && touch "$OT_RUNTIME/new" &&
    {python} -I -c 'import mine; assert mine.ANSWER == 42' && echo 1 > {REWARD}
"""
    task = task_of(test=test)
    write_wheel(task.path / "tests")
    for _ in range(2):
        result = ask_real("oracle", task)
        assert result.facts["score"] == 1.0, result
    assert digest() == before


@pytest.mark.parametrize(
    ("plant", "reasons"),
    [
        (
            f"mkdir -p {ROOT}/bin; printf '#!/bin/sh\\necho 1 > {REWARD}' > {ROOT}/bin/python3; chmod +x {ROOT}/bin/*",
            (),
        ),
        (f"mkdir -p {ROOT}/lib/python3.11; echo 'raise SystemExit' > {ROOT}/lib/python3.11/sitecustomize.py", ()),
        (f"mkdir -p {ROOT}; chmod 000 {ROOT}; touch /opt/otval/runtimes/other", ()),
        (f"mkdir -p /opt/otval/runtimes /evil; ln -s /evil {ROOT}", ("tampered",)),
        ("mkdir /evil; rm -rf /opt; ln -s /evil /opt", ("tampered",)),
        ("rm -rf /opt; ln -s /nowhere /opt", ("tampered",)),
        ("rm -rf /opt; touch /opt", ("tampered",)),
    ],
)
def test_what_an_agent_plants_at_its_path_changes_nothing(ask_real, task_of, plant, reasons):
    result = ask_real("oracle", task_of(solve=plant))
    assert result.reason in (reasons or ("wrong-reward",)), result
    if not reasons:
        assert ask_real("oracle", task_of(solve=f"{PASSES}; {plant}")).reason == "expected"


@pytest.mark.parametrize(("shell", "score"), [("/bin/bash", 1.0), (f"{ROOT}/bin/bash", 0.0)])
def test_a_script_may_name_the_shell_of_its_runtime(ask_real, task_of, shell, score):
    """A replaced /bin/bash pays for itself, where it is what runs test.sh."""
    pays = f"#!/bin/sh\\necho 1 > {REWARD}\\n"
    solve = f"printf '{pays}' > /tmp/bash; chmod 755 /tmp/bash; mv /tmp/bash /bin/bash"
    task = task_of(solve=solve, files={"tests/test.sh": f"#!{shell}\n{GRADES}"})
    assert ask_real("oracle", task).facts["score"] == score


# --- an agent's ---


def test_what_an_agent_installs_is_seen_by_its_verifier_and_gone_in_the_next_trial(ask_real, task_of, digest):
    before = digest()
    python = f"{ROOT}/bin/python3"
    setup = f"#!/bin/bash\n! {python} -I -c 'import mine' 2>/dev/null && cp /setup_files/*.whl /var/tmp\n"
    solve = f"{python} {INSTALL} /var/tmp/mine-1-py3-none-any.whl && rm {ROOT}/bin/git"
    test = f"{python} -I -c 'import mine' && [ ! -e {ROOT}/bin/git ] && echo 1 > {REWARD} || echo 0 > {REWARD}"
    task = task_of(solve, test, agent=True, verifier=False, files={"setup_files/setup.sh": setup})
    write_wheel(task.path / "setup_files")
    for _ in range(2):
        result = ask_real("oracle", task)
        assert result.facts["score"] == 1.0, result
    assert ask_real("noop", task).facts["score"] == 0.0
    assert digest() == before


def test_container_root_cannot_write_to_the_cache(ask_real, task_of, digest):
    before = digest()
    attack = f"""
for target in {ROOT} / /opt; do
  mount -o remount,rw "$target"; mount -o remount,rw,bind "$target"; umount -l "$target"
done
grep -e squashfuse -e own-layer /proc/mounts | while read -r _ target _; do
  mount -o remount,rw "$target"; umount -l "$target"; echo spoilt > "$target/bin/python3"
done
find {ROOT}/bin -type f -exec sh -c 'echo spoilt > "$1"' sh {{}} \\; ; rm -rf {ROOT}/*; ls -A {ROOT}
echo 1 > {REWARD}
"""
    # The same script attacks the agent's layer first, then the verifier's mount.
    task = task_of(solve=attack.replace(REWARD, "/dev/null"), test=attack, agent=True)
    assert ask_real("oracle", task).facts["score"] == 1.0
    assert digest() == before
    assert ask_real("oracle", task_of()).reason == "expected"


# --- it needs nothing of the image ---

PROOF = f"""
set -e
cd /tmp && echo 'def test_it(tmp_path): assert True' > test_it.py
env -i {ROOT}/bin/python3 -I -m pytest -q -p no:cacheprovider --rootdir=/tmp --junitxml=/tmp/j.xml --ctrf=/tmp/c.json \\
    test_it.py
env -i {ROOT}/bin/python3 -I -c 'import subprocess, sys; subprocess.run([sys.executable, "-I", "-c", ""], check=True)'
env -i {ROOT}/bin/bash -c '[[ $BASH_VERSION ]] && {ROOT}/bin/sort --version > /dev/null'
env -i {ROOT}/bin/git init -q /tmp/repository && env -i {ROOT}/bin/git -C /tmp/repository status --short
test -s /tmp/j.xml && test -s /tmp/c.json && echo whole
"""


def test_it_runs_where_the_image_has_no_loader_libraries_and_shell(sealed):
    gut = "busybox=/.otval/busybox; $busybox rm -rf /lib64 /lib /usr/lib /usr/lib64 /bin /sbin /usr/bin /usr/sbin /etc"
    status, said = sealed(gut, f"set -- /bin/sh /lib64 /usr/lib; ! ls $* 2>/dev/null && {PROOF}")
    assert (status, said.splitlines()[-1]) == (0, "whole"), said


def test_it_runs_in_an_image_of_another_libc(sealed, real):
    """As in one of musl: there is nothing but busybox, and what the variables lead to is no library of ours."""
    toolbox = real.sandbox._toolbox
    plant = """
mkdir -p /lib /usr/lib && for name in libc.so.6 libpython3.11.so.1.0 libz.so.1 libtinfo.so.6 ld-linux-x86-64.so.2; do
  echo 'not for this loader' > /usr/lib/$name; cp /usr/lib/$name /lib/$name
done"""
    env = {"LD_LIBRARY_PATH": "/usr/lib:/lib", "PATH": "/usr/bin:/bin"}
    proof = PROOF.replace("env -i ", "")
    status, said = sealed(plant, proof, env=env, files=(toolbox,))
    assert (status, said.splitlines()[-1]) == (0, "whole"), said


def test_no_file_of_the_image_gets_into_its_processes(sealed):
    poison = f"""{POISON}
mkdir -p /usr/lib/ssl /etc/python3.11 /root/.local/lib/python3.11/site-packages
cp /etc/ssl/openssl.cnf /usr/lib/ssl/
for name in sitecustomize usercustomize; do
  echo 'print("evil")' | tee /etc/python3.11/$name.py > /root/.local/lib/python3.11/site-packages/$name.py
done
echo 'import sys; print("evil")' > /root/.local/lib/python3.11/site-packages/evil.pth
"""
    look = f"""
cd / && HOME=/root {ROOT}/bin/python3 -c '
import ctypes, encodings.idna, hashlib, pwd, sqlite3, ssl
pwd.getpwnam("root"); hashlib.new("sha256"); ssl.create_default_context()
lines = [line.split(maxsplit=5) for line in open("/proc/self/maps") if "/" in line]
print(sorted(line[5] for line in lines if "x" in line[1] and not line[5].startswith("{ROOT}/")))
'"""
    assert sealed(poison, f"{POISONED} && {look}") == (0, "[]\n")


def test_its_git_runs_nothing_of_a_repository(sealed):
    git = f"{ROOT}/bin/git"
    script = f"""
set -e
export GIT_CONFIG_COUNT=0 HOME=/root
printf '[core]\\n\\thooksPath = /evil\\n' > /root/.gitconfig; cp /root/.gitconfig /etc/gitconfig
{git} init -q /r && cd /r && echo 1 > f && {git} add f
{git} -c user.name=a -c user.email=a@b commit -q -m one
mkdir /evil; printf '#!/bin/sh\\necho hook > /hooked\\n' > /evil/post-checkout; cp /evil/post-checkout .git/hooks/
cp /evil/post-checkout /evil/fsmonitor; chmod 755 /evil/* .git/hooks/post-checkout
{git} config core.fsmonitor /evil/fsmonitor
echo 2 > f; {git} checkout -q f; {git} status --short; cat f
test ! -e /hooked"""
    assert sealed(script) == (0, "1\n")


def test_where_the_kernel_gives_no_overlay_a_copy_serves(sealed, digest, monkeypatch):
    before = digest()
    monkeypatch.setattr(first_process, "_LAYER", first_process._LAYER.replace("mount -t overlay", "false"))
    script = f"{ROOT}/bin/python3 -I -m pytest --version && echo spoilt > {ROOT}/bin/git && cat {ROOT}/bin/git"
    status, said = sealed(f"umount -l {ROOT}; mount -o remount,ro {ROOT}; ls -A /.otval/own-layers", script)
    assert (status, said.splitlines()[-1]) == (0, "spoilt"), said
    assert digest() == before


def test_a_runtime_stays_read_only_where_nothing_else_is_asked_for(real, image, verifier_runtime, tmp_path):
    bind = Bind(real.runtimes.file(verifier_runtime), ROOT, "squashfs", inside=ROOT)
    with real.sandbox.open(ContainerSpec(image.files, binds=[bind])) as container:
        argv = [f"{TOOLBOX}/busybox", "touch", f"{ROOT}/new"]
        assert not container.run(Command(argv, tmp_path / "said")).ok
