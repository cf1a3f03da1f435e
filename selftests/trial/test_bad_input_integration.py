"""Real trials of tasks that go wrong in every way we could think of: each has one verdict, and nothing hangs."""

import os
from pathlib import Path

import pytest

from pytest_otval.task.dataset import DatasetSettings
from selftests.fakes import TOML, make_task

pytestmark = pytest.mark.integration

PASSES = "mkdir -p /app && echo 42 > /app/answer.txt"
GRADES = '[ "$(head -c 9 /app/answer.txt 2>/dev/null)" = 42 ] && r=1 || r=0; echo $r > /logs/verifier/reward.txt'
REWARD = "/logs/verifier/reward.txt"


@pytest.fixture
def verdict_of(ask_real, tmp_path):
    """Run a stage and return its result; ``solve`` and ``test`` are bash."""

    def run(stage="oracle", solve=PASSES, test=GRADES, settings=None, rules="default", **task):
        return ask_real(stage, make_task(tmp_path, solve, test, **task), settings, rules=rules)

    return run


def host_files():
    names = ("/etc/passwd", "/etc/hostname", "/etc/hosts", "/proc/sys/kernel/core_pattern")
    return {name: Path(name).read_bytes() for name in names}, sorted(os.listdir("/etc")), sorted(os.listdir("/"))


@pytest.fixture(autouse=True)
def host_is_unchanged():
    before = host_files()
    yield
    assert host_files() == before


def test_honest_task(verdict_of):
    result = verdict_of()
    assert (result.reason, result.facts["score"], result.facts["scope"]) == ("expected", 1.0, "phase")
    assert verdict_of("noop").reason == "expected"


# --- the solution ----------------------------------------------------------------------------------------------------


def test_no_solution(verdict_of):
    result = verdict_of(solve=None)
    assert (result.reason, result.verdict) == ("no-solution", "n/a")


@pytest.mark.parametrize(
    ("rules", "reason"), [("default", "expected"), ("harbor", "expected"), ("strict", "solution-failed")]
)
def test_solution_that_fails_after_its_work(verdict_of, rules, reason):
    result = verdict_of(solve=f"{PASSES}; exit 9", rules=rules)
    assert result.reason == reason
    assert result.facts["harbor"]["pass"] is True


@pytest.mark.parametrize(
    ("solve", "reason"),
    [
        ("exit 1", "wrong-reward"),
        ("sleep 1000", "agent-timeout"),
        ("kill -9 $PPID; exit 5", "wrong-reward"),
        ("kill -9 -1", "wrong-reward"),
    ],
)
def test_solution_that_does_not_work(verdict_of, solve, reason):
    toml = TOML.replace("timeout_sec = 30.0", "timeout_sec = 3.0", 1)
    assert verdict_of(solve=solve, toml=toml).reason == reason


# --- the verifier ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("true", "no-reward"),
        (f"touch {REWARD}", "reward-unreadable"),
        (f"echo nan > {REWARD}", "reward-unreadable"),
        (f"echo passed > {REWARD}", "reward-unreadable"),
        (f"head -c 1000 /dev/urandom > {REWARD}", "reward-unreadable"),
        (f"echo 2 > {REWARD}", "reward-out-of-range"),
        (f"echo 0 > {REWARD}; echo '{{\"reward\": 1}}' > /logs/verifier/reward.json", "reward-conflict"),
        (f"echo 0 > /logs/verifier/x; ln -s x {REWARD}", "reward-not-regular"),
        (f"ln -s /etc/passwd {REWARD}", "reward-not-regular"),
        (f"ln -s {__file__} {REWARD}", "reward-not-regular"),
        (f"ln -s reward.txt {REWARD}", "reward-not-regular"),
        (f"mkfifo {REWARD}", "reward-not-regular"),
        (f"mkdir {REWARD}", "reward-not-regular"),
        (f"head -c 1M /dev/zero > {REWARD}", "reward-too-large"),
        (f"truncate -s 1T {REWARD}", "reward-too-large"),
        (f"rm -rf /logs/verifier; mkdir -p /logs/verifier; echo 0 > {REWARD}", "expected"),
        ("umount -l /logs/verifier; mv /logs/verifier /gone; mkdir -p /logs/verifier", "no-reward"),
        (f"umask 077; echo 0 > {REWARD}; chmod 000 {REWARD} /logs/verifier", "expected"),
        (f"head -c 200M /dev/zero | tr '\\0' x; echo 0 > {REWARD}", "expected"),
        (f"printf '\\xff\\xfe\\x00'; echo 0 > {REWARD}", "expected"),
        (f"echo 0 > {REWARD}; exit 255", "expected"),
        (f"echo 0 > {REWARD}; kill -9 $PPID", "expected"),
        (f"echo 0 > {REWARD}; kill -9 -1", "expected"),
        (f"echo 0 > {REWARD}; setsid sleep 1000 &", "expected"),
        (f"(while :; do echo 1 > {REWARD}; done) & echo 0 > {REWARD}; kill $!; wait; echo 0 > {REWARD}", "expected"),
        (f"rm -f /bin/bash /bin/sh /usr/bin/bash; echo 0 > {REWARD}", "expected"),
        ("sleep 1000", "verifier-timeout"),
        (f"echo 0 > {REWARD}; sleep 1000", "verifier-timeout"),
        (
            f"cd /logs/verifier; for i in $(seq 300); do echo x > f$i; done; mkdir -p {'d/' * 300}; echo 0 > {REWARD}",
            "expected",
        ),
    ],
    ids=lambda value: value[:40],
)
def test_verifier(verdict_of, test, reason):
    toml = TOML.replace("[verifier]\ntimeout_sec = 30.0", "[verifier]\ntimeout_sec = 5.0")
    result = verdict_of("noop", test=test, toml=toml)
    assert result.reason == reason, result


def test_no_test_script(verdict_of):
    assert verdict_of("noop", test=None).reason == "no-reward"


def test_limits(verdict_of):
    toml = TOML.replace("[environment]", "[environment]\nmemory_mb = 100\nstorage_mb = 30")
    assert verdict_of("noop", test="x=$(head -c 300M /dev/zero | tr '\\0' x)", toml=toml).reason == "memory-limit"
    assert verdict_of("noop", test="head -c 60M /dev/zero > /x", toml=toml).reason == "storage-limit"
    assert verdict_of(solve="head -c 60M /dev/zero > /x", toml=toml).reason == "storage-limit"


# --- what the agent leaves -------------------------------------------------------------------------------------------

EVIL = "echo 1 > /logs/verifier/reward.txt"

PLANTS = {
    "verifier folder": "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt",
    "verifier link": "rm -rf /logs/verifier; mkdir -p /app/mine; ln -s /app/mine /logs/verifier",
    "verifier file": "rm -rf /logs/verifier; echo x > /logs/verifier",
    "logs link": "umount -l /logs/agent; rm -rf /logs; ln -s /etc /logs",
    "logs file": "umount -l /logs/agent; rm -rf /logs; echo x > /logs",
    "tests file": "rm -rf /tests; echo x > /tests",
    "tests folder": "mkdir -p /tests; printf '#!/bin/bash\\necho 1 > /logs/verifier/reward.txt' > /tests/test.sh",
    "tests link": "rm -rf /tests; ln -s /etc /tests",
    "tests dangling link": "rm -rf /tests; ln -s /no/such/folder /tests",
    "tests FIFO": "rm -rf /tests; mkfifo /tests",
    "background writer": f"setsid bash -c 'while :; do mkdir -p /logs/verifier; {EVIL}; sleep 0.01; done' & sleep 0.1",
    "environment scripts": f"mkdir -p /.singularity.d/env; echo '{EVIL}' | tee /.singularity.d/env/{{1,99}}-x.sh",
    "runtime's link": "rm -rf /.singularity.d; ln -s /etc /.singularity.d",
    "runtime's file": "rm -rf /.singularity.d; echo x > /.singularity.d",
    "toolbox": "umount -l /.otval; mv /.otval /x; rm -rf /.otval; mkdir -p /.otval; echo x > /.otval/busybox",
    "inbox": "rm -rf /.otval-inbox; ln -s /etc /.otval-inbox; ln -s /etc /.otval-artifacts",
    "locked folders": "mkdir -p /app/a/b; chmod 000 /app/a/b /app/a",
    "umask": "umask 077; mkdir -p /app/private; echo x > /app/private/x",
    "immutable": "chattr +i /app /tests /logs 2>/dev/null",
    "preload": "echo /no/such/library.so > /etc/ld.so.preload",
    "mount on tests": "mkdir -p /tests; mount -t tmpfs none /tests; mount --bind /etc /logs",
    "deep folders": f"cd /app; for i in 1 2 3; do mkdir -p {'d/' * 400} && cd {'d/' * 400}; done",
    "odd names": "cd /app; touch -- '-rf' $'new\\nline' $'\\xff' \"it's\"",
    "proc and sys": "rm -rf /proc /sys /dev 2>/dev/null; umount -l /proc /sys /dev 2>/dev/null",
}
TOLD = ("runtime's file",)
"""Plants that keep any clean container from starting."""
PAYS_ELSEWHERE = (
    "verifier folder",
    "verifier link",
    "tests folder",
    "tests link",
    "background writer",
    "environment scripts",
    "toolbox",
    "mount on tests",
)
"""Plants that a verifier in the agent's own container would take for a reward."""


@pytest.mark.parametrize("plant", PLANTS)
def test_agent_that_plants_something(verdict_of, plant):
    """The honest part is graded as it would be without the plant."""
    result = verdict_of(solve=f"{PASSES}; {PLANTS[plant]}; true")
    assert result.reason == ("tampered" if plant in TOLD else "expected"), result


@pytest.mark.parametrize("plant", PAYS_ELSEWHERE)
def test_plant_alone_pays_nothing(verdict_of, plant):
    result = verdict_of(solve=f"mkdir -p /app; {PLANTS[plant]}; true")
    # What left a process behind is tried again in the agent's own container, which the line tells; there it is a race.
    trial = result.facts["trials"][0]
    assert (trial["scope"], trial["class"], trial["score"]) == ("phase", "wrong-reward", 0.0)
    if result.reason != "wrong-reward":
        assert (plant, result.facts["isolation"]) == ("background writer", "none")


def test_root_without_programs(verdict_of):
    """Nothing is left to run test.sh with; our own programs need nothing of the root."""
    result = verdict_of(solve="rm -f /lib64 /lib /bin /sbin")
    assert (result.reason, result.facts["trials"][0]["steps"][0]["verifier_status"]) == ("no-reward", 127)


# --- the rest of a trial ---------------------------------------------------------------------------------------------


def test_set_up(verdict_of):
    files = {"setup_files/setup.sh": "#!/bin/bash\ncp /setup_files/data /data", "setup_files/data": "42\n"}
    solve = "mkdir -p /app; ls /setup_files 2>/dev/null && exit; cp /data /app/answer.txt"
    test = f"ls /setup_files /solution /tests/solve.sh 2>/dev/null && exit; {GRADES}"
    toml = TOML.replace("[environment]", '[environment]\nworkdir = "/somewhere/new"')
    assert verdict_of(solve=solve, test=test, files=files, toml=toml).reason == "expected"
    assert verdict_of("noop", solve=solve, test=f"[ -f /data ] || exit; {GRADES}", files=files).reason == "expected"


@pytest.mark.parametrize(
    ("text", "reason"), [("exit 3", "setup-failed"), ("sleep 1000", "setup-timeout"), ("kill -9 -1", "setup-failed")]
)
def test_set_up_that_fails(verdict_of, text, reason):
    toml = TOML.replace("[environment]", "[environment]\nbuild_timeout_sec = 3.0")
    files = {"setup_files/setup.sh": f"#!/bin/bash\n{text}"}
    assert verdict_of("noop", files=files, toml=toml).reason == reason


def test_verifier_set_up(verdict_of):
    files = {"tests/setup.sh": "#!/bin/bash\necho 42 > /expected"}
    test = f"[ -f /expected ] || exit; {GRADES}"
    assert verdict_of(test=test, files=files).reason == "expected"
    assert verdict_of(files={"tests/setup.sh": "#!/bin/bash\nexit 1"}).reason == "setup-failed"


SEPARATE = 'artifacts = ["/app/out", "answer.txt"]\n' + TOML + 'environment_mode = "separate"\n'
SEPARATE = SEPARATE.replace("[environment]", '[environment]\nworkdir = "/app"')


def test_separate_verifier_gets_declared_artifacts_only(verdict_of):
    solve = f"""{PASSES}
mkdir -p /app/out/sub /app/other; echo x > /app/out/sub/file; echo x > /app/other/file
ln /app/out/sub/file /app/out/hard
ln -s sub/file /app/out/good; ln -s /etc/passwd /app/out/passwd; ln -s ../../tests/test.sh /app/out/up
mkfifo /app/out/fifo; chmod 4755 /app/out/sub/file; mkdir -p /logs/artifacts; echo x > /logs/artifacts/log
echo changed > /etc/hostname; touch /tmp/mine"""
    test = (
        """cd /app
[ "$(find . | sort | tr '\\n' ' ')" = ". ./answer.txt ./out ./out/good ./out/hard ./out/sub ./out/sub/file " ] || exit
[ "$(cat out/hard out/good)" = $'x\\nx' ] && [ ! -u out/sub/file ] || exit
[ -f /logs/artifacts/log ] && [ ! -e /tmp/mine ] || exit
"""
        + GRADES
    )
    result = verdict_of(solve=solve, test=test, toml=SEPARATE)
    assert (result.reason, result.facts["isolation"]) == ("expected", "separate")


@pytest.mark.parametrize(
    "solve",
    [
        "rm -rf /app /logs/artifacts; umount -l /logs/agent; rm -rf /logs",
        "ln -s /tests /app/out; ln -s /tests/answer.txt /app/answer.txt",
        "mkfifo /app/answer.txt; mkfifo /app/out",
        "rm -rf /logs/artifacts; ln -s /etc /logs/artifacts",
    ],
)
def test_artifacts_that_are_none(verdict_of, solve):
    result = verdict_of(solve=f"mkdir -p /app; {solve}", toml=SEPARATE, files={"tests/answer.txt": "42"})
    assert (result.reason, result.facts["score"]) == ("wrong-reward", 0.0)


def steps_toml(*names):
    limits = "[steps.agent]\ntimeout_sec = 20.0\n[steps.verifier]\ntimeout_sec = 20.0\n"
    one = '[[steps]]\nname = "{}"\nmin_reward = 1.0\n' + limits
    return TOML.replace("[environment]", '[environment]\nworkdir = "/app"') + "".join(
        one.format(name) for name in names
    )


def step(name, solve, test, **files):
    scripts = {"solution/solve.sh": f"#!/bin/bash\n{solve}", "tests/test.sh": f"#!/bin/bash\n{test}", **files}
    return {f"steps/{name}/{path}": text for path, text in scripts.items()}


def graded(condition):
    return f"{condition} && r=1 || r=0; echo $r > {REWARD}"


def test_steps(verdict_of):
    files = {
        **step("one", "cp given out1", graded("[ -f out1 ] && [ ! -e /tests/two ]"), **{"workdir/given": "x"}),
        **step("two", "cp out1 out2", graded("[ -f out2 ] && [ -f /tests/two ]"), **{"tests/two": "x"}),
    }
    result = verdict_of(solve=None, test=None, toml=steps_toml("one", "two"), files=files)
    assert result.reason == "expected"
    assert [found["name"] for found in result.facts["trials"][0]["steps"]] == ["one", "two"]


def test_step_without_its_least_reward_is_the_last(verdict_of):
    files = {**step("one", "true", graded("false")), **step("two", "true", graded("true"))}
    result = verdict_of(solve=None, test=None, toml=steps_toml("one", "two"), files=files)
    assert (result.reason, len(result.facts["trials"][0]["steps"])) == ("wrong-reward", 1)


def test_step_that_blocks_the_next(verdict_of):
    """A FIFO lies where a file of the next step is to be copied."""
    files = {
        **step("one", "mkfifo given", graded("true")),
        **step("two", "true", graded("true"), **{"workdir/given": "x"}),
    }
    toml = steps_toml("one", "two").replace("[environment]", "[environment]\nbuild_timeout_sec = 3.0")
    result = verdict_of(solve=None, test=None, toml=toml, files=files)
    assert result.reason in ("expected", "setup-timeout")


NC = "/.otval/busybox nc"
SERVICE = f"setsid bash -c 'while :; do {NC} -l -p 7777 -e /bin/echo up; done' & sleep 0.3"
ASKS = graded(f'[ "$({NC} -w 2 127.0.0.1 7777 </dev/null)" = up ]')


def test_service_of_the_agent(verdict_of):
    """Scope trial is found by itself where a service was left, and can be declared."""
    result = verdict_of(solve=SERVICE, test=ASKS)
    assert (result.reason, result.facts["scope"], len(result.facts["trials"])) == ("expected", "trial", 2)
    declared = TOML + '[metadata.otval]\nprocess_scope = "trial"\n'
    for stage in ("oracle", "noop"):
        result = verdict_of(stage, solve=SERVICE, test=ASKS, toml=declared)
        assert (result.reason, result.facts["scope"], len(result.facts["trials"])) == ("expected", "trial", 1)
    result = verdict_of("noop", solve=SERVICE, test=ASKS, settings=DatasetSettings(isolation="none"))
    assert (result.reason, result.facts["isolation"]) == ("expected", "none")


def test_verifier_in_the_agents_container(verdict_of):
    """What was planted at the places of the verifier is gone before the tests come."""
    declared = TOML + '[metadata.otval]\nprocess_scope = "trial"\n'
    solve = "echo 1 > /logs/verifier/reward.txt; printf '#!/bin/bash\\ntrue' > /tests/test.sh; ls -A /.otval-inbox"
    result = verdict_of(solve=solve, toml=declared)
    assert (result.reason, result.facts["score"]) == ("wrong-reward", 0.0)
    assert verdict_of(solve=f"{PASSES}; rm -rf /tests/* /logs/*", toml=declared).reason == "expected"


def test_users(verdict_of, real):
    if not real.sandbox.maps_uids:
        pytest.skip("users cannot be mapped here")
    toml = TOML.replace("[agent]", '[agent]\nuser = "nobody"').replace("[verifier]", "[verifier]\nuser = 1234")
    solve = "umask 077; [ $(id -un) = nobody ] && echo 42 > /tmp/x; chmod 644 /tmp/x"
    test = f"[ $(id -u) = 1234 ] && cp /tmp/x /tmp/y && [ $(cat /tmp/y) = 42 ] && umask 077 && echo 1 > {REWARD}"
    assert verdict_of(solve=solve, test=test, toml=toml).reason == "expected"
    missing = TOML.replace("[agent]", '[agent]\nuser = "no-such-user"')
    assert verdict_of(toml=missing).reason == "bad-task"


def test_evidence_is_kept(verdict_of, tmp_path):
    test = f"echo words; echo more > /logs/verifier/report.json; ln -s /etc/passwd /logs/verifier/link; {GRADES}"
    verdict_of(solve=f"echo solved; {PASSES}", test=test)
    evidence = tmp_path / "evidence"
    assert (evidence / "agent/oracle.txt").read_text() == "solved\n"
    assert (evidence / "verifier/test-stdout.txt").read_text() == "words\n"
    assert sorted(os.listdir(evidence / "verifier")) == ["report.json", "reward.txt", "test-stdout.txt"]
