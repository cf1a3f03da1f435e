"""What a verifier sees at ``masked`` and ``pristine`` of what an agent left, in real containers."""

import pytest

from pytest_otval.core import Verdict
from selftests.fakes import TOML, make_task

pytestmark = pytest.mark.integration

DOCKERFILE = """FROM debian:bookworm
RUN apt-get update && apt-get install -y --no-install-recommends python3-pytest
RUN mkdir -p /opt/tool /usr/local/lib/python3.11/dist-packages/demo_pkg-1.0.dist-info /srv/real /home/me/app \\
 && echo old > /opt/tool/file && echo old > /opt/tool/other && echo old > /srv/file && ln -s /srv/real /work \\
 && cd /usr/local/lib/python3.11/dist-packages && echo 'VERSION = 1' > demo_module.py \\
 && echo demo_module.py,, > demo_pkg-1.0.dist-info/RECORD && touch demo_pkg-1.0.dist-info/METADATA
WORKDIR {workdir}
"""

BREAK_SYSTEM = """
printf '#!/bin/sh\\nexit 0\\n' > /usr/bin/pytest
echo 'import os; os._exit(0)' > /usr/lib/python3/dist-packages/sitecustomize.py
echo bad > /etc/passwd
rm -rf /opt; mkdir /opt; echo new > /opt/planted
rm /usr/bin/python3; ln -s /bin/true /usr/bin/python3
"""
SYSTEM_IS_WHOLE = """
grep -q root: /etc/passwd && test "$(cat /opt/tool/file)" = old && test ! -e /opt/planted &&
test ! -e /usr/lib/python3/dist-packages/sitecustomize.py && python3 -m pytest --version && test -s /usr/bin/pytest
"""


def pays(condition):
    return f"if {{ {condition.strip()}\n}} >&2; then echo 1; else echo 0; fi > /logs/verifier/reward.txt"


@pytest.fixture
def score(ask_real, tmp_path):
    def run(level, solve, condition, keep=(), workdir="/work", **files):
        toml = TOML + (f"[metadata.otval]\nkeep = {list(keep)!r}\n" if keep else "")
        files = {"environment/Dockerfile": DOCKERFILE.replace("{workdir}", workdir), **files}
        task = make_task(tmp_path, solve, pays(condition), toml, files)
        result = ask_real("oracle", task, isolation=level)
        assert result.verdict in (Verdict.PASS, Verdict.FAIL), result
        assert (result.facts["isolation"], result.reason in ("expected", "wrong-reward")) == (level, True), result
        return result.facts["score"]

    return run


@pytest.mark.parametrize(("level", "expected"), [("fresh", 0), ("masked", 1), ("pristine", 1)])
def test_the_system_is_the_images(score, level, expected):
    assert score(level, BREAK_SYSTEM, SYSTEM_IS_WHOLE) == expected


@pytest.mark.parametrize("level", ["masked", "pristine"])
@pytest.mark.parametrize("workdir", ["/work", "/home/me/app", "/usr/src/app", "/new/place"])
def test_the_workdir_is_the_agents(score, level, workdir):
    solve = f"{BREAK_SYSTEM}\ncd {workdir} && mkdir -p deep/er && echo 1 > deep/er/file && ln -s /etc/passwd link"
    condition = f"cd {workdir} && test -e deep/er/file && test -L link && {SYSTEM_IS_WHOLE}"
    assert score(level, solve, condition, workdir=workdir) == 1


@pytest.mark.parametrize(("level", "expected"), [("masked", "new"), ("pristine", "old")])
def test_what_is_neither_system_nor_the_agents(score, level, expected):
    assert score(level, "echo new > /srv/file; echo 1 > /srv/more", f'test "$(cat /srv/file)" = {expected}') == 1


@pytest.mark.parametrize("level", ["masked", "pristine"])
def test_paths_that_the_instruction_names_are_the_agents(score, level):
    files = {"instruction.md": "Write it to `/srv/answer.txt`.\n"}
    condition = 'test "$(cat /srv/answer.txt)" = new && test "$(cat /srv/file)" = old'
    assert score(level, "echo new > /srv/answer.txt", condition, **files) == 1


@pytest.mark.parametrize("level", ["masked", "pristine"])
def test_what_is_kept_is_as_the_agent_left_it(score, level):
    solve = f"{BREAK_SYSTEM}\nmkdir -p /opt/tool/more; echo new > /opt/tool/file; echo new > '/opt/tool/more/a b*'"
    condition = """
test "$(cat /opt/tool/file)" = new && test "$(cat '/opt/tool/more/a b*')" = new && test ! -e /opt/tool/other &&
test ! -e /opt/planted && grep -q root: /etc/passwd
"""
    assert score(level, solve, condition, keep=["/opt/tool"]) == 1


@pytest.mark.parametrize("level", ["masked", "pristine"])
@pytest.mark.parametrize("name", ["demo-pkg", "Demo_Pkg"])
def test_a_package_that_is_kept(score, level, name):
    solve = """
cd /usr/local/lib/python3.11/dist-packages && rm -r demo_pkg-1.0.dist-info && mkdir demo_pkg-2.0.dist-info
touch demo_pkg-2.0.dist-info/METADATA; echo 'VERSION = 2' > demo_module.py; echo 'import x' > planted.pth
touch /usr/lib/python3/dist-packages/pytest/planted.py planted.py
"""
    condition = """
cd /usr/local/lib/python3.11/dist-packages && test ! -e demo_pkg-1.0.dist-info && test -e demo_pkg-2.0.dist-info &&
test ! -e planted.py && test ! -e planted.pth && test ! -e /usr/lib/python3/dist-packages/pytest/planted.py &&
test "$(python3 -c 'import demo_module as m; print(m.VERSION)')" = 2
"""
    assert score(level, solve, condition, keep=[f"pkg:{name}"]) == 1


def test_many_packages_that_are_kept(score):
    """More than one argument of a program can hold."""
    keep = ["/opt/tool/file", *(f"pkg:some-package-name-{number}" for number in range(60))]
    assert score("masked", "echo new > /opt/tool/file", 'test "$(cat /opt/tool/file)" = new', keep=keep) == 1


@pytest.mark.parametrize("level", ["masked", "pristine"])
def test_what_set_up_installs_is_no_agents(score, level):
    files = {
        "setup_files/setup.sh": "#!/bin/bash\necho tool > /usr/local/bin/tool; rm /opt/tool/other; rm -r /srv/real\n"
    }
    solve = "echo bad > /usr/local/bin/tool; echo bad > /usr/local/bin/more; echo bad > /opt/tool/other"
    condition = """
test "$(cat /usr/local/bin/tool)" = tool && test ! -e /usr/local/bin/more && test ! -e /opt/tool/other &&
test -e /opt/tool/file
"""
    assert score(level, solve, condition, workdir="/app", **files) == 1


@pytest.mark.parametrize("level", ["masked", "pristine"])
def test_links_and_pipes_in_place_of_system_folders(score, level):
    solve = """
mkdir -p /work/x && cp -a /etc /work/etc && rm -rf /etc && ln -s /work/etc /etc && echo bad > /work/etc/passwd
rm -rf /opt && mkfifo /opt; rm -rf /sbin; ln -s /nowhere /sbin
"""
    assert score(level, solve, SYSTEM_IS_WHOLE) == 1


def test_steps_that_follow_see_what_was_put_back(ask_real, tmp_path):
    """At ``masked`` what one step installs into the system is gone for the next: said in the documentation."""
    toml = TOML + '[[steps]]\nname = "a"\n[[steps]]\nname = "b"\n'
    test = "#!/bin/bash\nif test -e /usr/local/bin/tool; then echo 0; else echo 1; fi > /logs/verifier/reward.txt\n"
    files = {"environment/Dockerfile": DOCKERFILE.replace("{workdir}", "/work")}
    for step, solve in (("a", "echo > /usr/local/bin/tool"), ("b", "test ! -e /usr/local/bin/tool")):
        files[f"steps/{step}/instruction.md"] = "x\n"
        files[f"steps/{step}/solution/solve.sh"] = f"#!/bin/bash\n{solve}\n"
        files[f"steps/{step}/tests/test.sh"] = test
    result = ask_real("oracle", make_task(tmp_path, None, None, toml, files), isolation="masked")
    assert (result.verdict, [step["agent_status"] for step in result.facts["trials"][0]["steps"]]) == (
        Verdict.PASS,
        [0, 0],
    )
