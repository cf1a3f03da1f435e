"""hermetic with real containers: what asks the network is caught, whether it gets an answer or not."""

import shlex

import pytest

from pytest_otval.core import Verdict
from selftests.fakes import TOML, make_task

pytestmark = pytest.mark.integration

PUBLIC = TOML.replace("no-network", "public")
REWARD = "/logs/verifier/reward.txt"
CONNECT = "timeout 3 bash -c 'exec 3<>/dev/tcp/192.0.2.7/8123'"
LOOK_UP = "getent hosts some-name.example.org"
PAY = f"&& echo 1 >{REWARD} || echo 0 >{REWARD}"


def found(result, check):
    return [(one["severity"], one["path"], one["line"]) for one in result.facts["checks"] if one["check"] == check]


def test_what_the_solution_asks_is_caught(ask_real, tmp_path):
    """The address is one of a documentation network: no machine answers, with or without internet."""
    solve = f"{LOOK_UP}\n{CONNECT}\nmkdir -p /app; echo 42 >/app/answer"
    result = ask_real("hermetic", make_task(tmp_path, solve, f"grep -q 42 /app/answer {PAY}", PUBLIC))
    assert result.verdict is Verdict.PASS, result
    told = result.facts["hermetic"]
    agent = told["network"]["agent"]
    assert agent["addresses"] == ["tcp 192.0.2.7:8123"]
    assert agent["names"][0] == "some-name.example.org"
    assert told["network"]["verifier"] == {"names": [], "addresses": [], "more": 0, "unheard": ""}
    assert found(result, "hermetic-solution-network") == [("info", "solution/solve.sh", 2)]
    nothing = {"paths": [], "count": 0, "whole": True}
    assert (told["noop_changed"], told["verifier_wrote"]) == (nothing, nothing)
    assert [trial["agent"] for trial in result.facts["trials"]] == ["oracle", "oracle", "noop"]


@pytest.mark.parametrize("scope", ["phase", "trial"])
def test_what_the_verifier_does_is_told_apart(ask_real, tmp_path, scope):
    toml = f'{PUBLIC}\n[metadata.otval]\nprocess_scope = "{scope}"\n'
    test = f"{LOOK_UP}\ntouch /root/seen /tmp/not-seen; rm /app/old\ntest -e /app/answer {PAY}"
    result = ask_real("hermetic", make_task(tmp_path, "mkdir /app; touch /app/answer /app/old", test, toml))
    assert result.verdict is Verdict.PASS, result
    told = result.facts["hermetic"]
    assert told["network"]["agent"]["names"] == []
    assert told["network"]["verifier"]["names"][0] == "some-name.example.org"
    assert found(result, "hermetic-verifier-network") == [("warning", "tests/test.sh", 2)]
    assert sorted(told["verifier_wrote"]["paths"]) == ["/app", "/root/seen"]


def test_a_verifier_that_needs_the_network(ask_real, tmp_path):
    """Its container has a default route there only."""
    test = f"grep -q ^tap0 /proc/net/route {PAY}"
    undeclared = make_task(tmp_path / "a", "true", test, "[agent]\ntimeout_sec = 30.0\n")
    result = ask_real("hermetic", undeclared)
    assert result.reason == "not-hermetic"
    assert "scores 1 with the network and 0 without" in result.headline
    declared = ask_real("hermetic", make_task(tmp_path / "b", "true", test, PUBLIC))
    assert declared.reason == "expected"
    assert found(declared, "hermetic-reward") == [("info", "task.toml", None)]


def test_a_task_without_a_network_that_would_do_otherwise_with_one(ask_real, tmp_path):
    result = ask_real("hermetic", make_task(tmp_path, "true", f"! grep -q ^tap0 /proc/net/route {PAY}"))
    assert result.reason == "not-hermetic"
    assert "scores 0 with the network and 1 without" in result.headline


def test_auto_watches_at_the_level_that_works(ask_real, tmp_path):
    task = make_task(tmp_path, "echo x >/usr/bin/made", f"test -e /usr/bin/made {PAY}")
    result = ask_real("hermetic", task, isolation="auto")
    assert (result.reason, result.facts["isolation"]) == ("expected", "fresh")
    assert result.facts["hermetic"]["keep"] == ["/usr/bin/made"]


def test_what_is_to_be_kept(ask_real, tmp_path):
    """Of the solution's work in folders of the system; as it is proposed, it is kept."""
    site = "/usr/lib/python3/dist-packages"
    dockerfile = {
        "environment/Dockerfile": f"FROM debian:bookworm-slim\nRUN mkdir -p {site}/old && touch {site}/old/x\n"
    }
    made = [
        f"{site}/thing/deep/a.py",
        "/usr/bin/thing",
        "/opt/new/below/f",
        "/usr/bin/alone",
        "/opt/with 'odd' \u00e9/f",
    ]
    solve = f"""
mkdir -p {site}/thing/deep {site}/thing-2.0.dist-info /opt/new/below "/opt/with 'odd' \u00e9"
echo x >{site}/thing/__init__.py; echo x >{site}/thing-2.0.dist-info/METADATA; rm {site}/old/x
printf "%s,,\\n" thing/__init__.py ../../../bin/thing ../../../bin/bash >{site}/thing-2.0.dist-info/RECORD
for path in {shlex.join(made)}; do echo x >"$path"; done
chmod 600 {site}/thing-2.0.dist-info/RECORD; chmod 700 {site}/thing-2.0.dist-info"""
    test = f'for path in {shlex.join(made)}; do test -s "$path" || exit 0; done; test ! -e {site}/old/x {PAY}'
    task = make_task(tmp_path / "fresh", solve, test, files=dockerfile)
    result = ask_real("hermetic", task)
    assert result.verdict is Verdict.PASS, result
    entries = ["pkg:thing", "/opt/new/", "/opt/with 'odd' \u00e9/", "/usr/bin/alone", "/usr/bin/thing", f"{site}/old/x"]
    assert result.facts["hermetic"]["keep"] == entries
    (fix,) = [one["fix"] for one in result.facts["checks"] if one["check"] == "keep-proposed"]
    assert fix.startswith('[metadata.otval] keep = ["pkg:thing", "/opt/new/", ')
    assert ask_real("oracle", task, isolation="masked").reason != "expected"
    toml = TOML + fix.replace("] ", "]\n", 1)
    kept = make_task(tmp_path / "masked", solve, test, toml, dockerfile)
    assert ask_real("oracle", kept, isolation="masked").reason == "expected"
