"""What an attack has to be, and that ours are."""

import subprocess

import pytest

from pytest_otval.attacks.battery import MOST_LINES, NEEDS, attack_of, battery, payloads
from selftests.attacks.reference import VERIFIERS

GOOD = {"shows": "x", "reference": "shell", "script": "true"}


def test_there_are_enough():
    assert len(battery()) >= 40
    assert all(attack.id == name for name, attack in battery().items())


def test_each_has_a_reference_task():
    assert {attack.reference for attack in battery().values()} <= VERIFIERS.keys()


def test_each_need_and_each_payload_is_used():
    assert {need for attack in battery().values() for need in attack.needs} == NEEDS.keys()
    scripts = " ".join(attack.script for attack in battery().values())
    assert all(f"$PAYLOADS/{name}" in scripts for name in payloads())


def test_what_no_container_can_stop_has_a_remedy_and_is_tried_alone():
    inside = [attack for attack in battery().values() if attack.remedy]
    assert {attack.family for attack in inside} == {"modules"}
    assert all("modules" in attack.needs and not attack.union for attack in inside)


@pytest.mark.parametrize("attack", battery().values(), ids=lambda attack: attack.id)
def test_a_posix_shell_reads_it(attack):
    checked = subprocess.run(["sh", "-n"], input=attack.script, text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("name", NEEDS)
def test_a_posix_shell_reads_needs(name):
    assert subprocess.run(["sh", "-n"], input=NEEDS[name], text=True).returncode == 0


@pytest.mark.parametrize(
    ("name", "wrong", "error"),
    [
        ("Bad_Id", {}, ValueError),
        ("good", {"needs": ["luck"]}, ValueError),
        ("good", {"script": ""}, ValueError),
        ("good", {"script": "true\n" * (MOST_LINES + 1)}, ValueError),
        ("good", {"shows": ""}, ValueError),
        ("good", {"strength": 1}, TypeError),
    ],
)
def test_what_is_wrong_is_refused(name, wrong, error):
    assert attack_of("good", "family", GOOD).needs == ()
    with pytest.raises(error):
        attack_of(name, "family", {**GOOD, **wrong})


def test_the_preloaded_library_ends_what_it_should(tmp_path):
    (tmp_path / "make.py").write_text(payloads()["preload.txt"])
    library = tmp_path / "preload.so"
    subprocess.run(["python3", tmp_path / "make.py", library], check=True)
    env = {"LD_PRELOAD": str(library)}
    said = [subprocess.run(["/bin/echo", "a", word], env=env, capture_output=True) for word in ("b", "x-pytest")]
    assert [(one.returncode, one.stdout) for one in said] == [(0, b"a b\n"), (0, b"")]
