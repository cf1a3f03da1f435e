"""oracle and noop over a fake sandbox: what is asked of images and containers, and what becomes of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_otval.core import REASONS, Conclusion, Verdict
from pytest_otval.images.model import ImageConfig
from pytest_otval.stages.question import Question
from pytest_otval.task.dataset import DatasetSettings
from selftests.fakes import TOML, Answer, FakeImages, ask, make_task, writes_reward


@pytest.fixture
def question(tmp_path):
    def make(task=None, **settings):
        return Question(task or make_task(tmp_path), DatasetSettings(**settings), tmp_path / "evidence")

    return make


def targets(container):
    return {bind.target for bind in container.spec.binds}


def scripts(machine):
    return [command.argv[-1] for command in machine.sandbox.commands if command.argv[-1].endswith(".sh")]


@pytest.mark.parametrize(
    ("stage", "text", "verdict"), [("oracle", "1", "pass"), ("noop", "0", "pass"), ("noop", "1", "fail")]
)
def test_verdict_and_facts(fake_machine, question, stage, text, verdict):
    machine = fake_machine(writes_reward(text))
    result, _ = ask(stage, machine, question())
    assert result.verdict == verdict
    facts = result.facts
    assert (facts["score"], facts["rewards"]) == (float(text), {"reward": float(text)})
    assert facts["image"] == {"key": "0" * 64, "content": "1" * 64, "base": "bootstrap:fake@0"}
    assert (facts["scope"], facts["isolation"], facts["stricter"]) == ("phase", "fresh", "")
    assert [trial["agent"] for trial in facts["trials"]] == [stage]
    assert {"setup", "verifier", "total"} <= set(facts["seconds"])


@pytest.mark.parametrize("has_artifacts", [False, True])
def test_each_phase_has_a_container(fake_machine, question, has_artifacts):
    """The hand-over has one, too, where it carries something over."""
    machine = fake_machine(writes_reward("1"))
    machine.sandbox.has_artifacts = has_artifacts
    ask("oracle", machine, question())
    agent, *hand_over, verifier = machine.sandbox.containers
    assert {"/solution", "/logs/agent"} <= targets(agent)
    assert not {"/tests", "/logs/verifier"} & targets(agent)
    assert list(map(targets, hand_over)) == ([{"/.singularity.d"}] if has_artifacts else [])
    assert machine.sandbox.layers == ([] if has_artifacts else [("restored", "tests")])
    assert targets(verifier) == {"/.singularity.d", "/tests", "/logs/verifier"}
    assert {container.spec.overlay for container in machine.sandbox.containers} == {agent.spec.overlay}
    assert {container.spec.network for container in machine.sandbox.containers} == {"none"}
    assert scripts(machine) == ["/solution/solve.sh", "/tests/test.sh"]
    assert not agent.spec.overlay.exists(), "the trial's folder is removed"


def test_nothing_of_the_dataset_is_bound(fake_machine, question, tmp_path):
    machine = fake_machine(writes_reward("1"))
    asked = question(make_task(tmp_path, files={"setup_files/setup.sh": "x"}))
    ask("oracle", machine, asked)
    for container in machine.sandbox.containers:
        for bind in container.spec.binds:
            assert bind.source.is_relative_to(machine.scratch.folder)


@pytest.mark.parametrize("isolation", ["none", "fresh"])
def test_commands_of_the_task_have_their_phase(fake_machine, question, tmp_path, isolation):
    """Whatever they are called, and whatever variables the task declares."""
    declared = f"""
[environment]
network_mode = "no-network"
[environment.env]
PATH = "/.otval"
[environment.healthcheck]
command = "/tests/check"
[verifier]
timeout_sec = 30.0
[[verifier.collect]]
command = "/tests/collect"
[metadata.otval]
isolation = "{isolation}"
"""
    files = {"setup_files/setup.sh": "true\n", "tests/setup.sh": "true\n"}
    machine = fake_machine(writes_reward("1"))
    result, _ = ask("oracle", machine, question(make_task(tmp_path, toml=declared, files=files)))
    assert result.verdict is Verdict.PASS, result
    assert [(one.phase, one.argv[-1]) for one in machine.sandbox.commands if one.phase] == [
        ("setup", "/setup_files/setup.sh"),
        ("agent", "/tests/check"),
        ("agent", "/solution/solve.sh"),
        ("agent", "/tests/collect"),
        ("verifier", "/tests/setup.sh"),
        ("verifier", "/tests/test.sh"),
    ]


def test_noop_has_one_container(fake_machine, question):
    machine = fake_machine(writes_reward("0"))
    ask("noop", machine, question())
    (verifier,) = machine.sandbox.containers
    assert {"/tests", "/logs/verifier"} <= targets(verifier)
    assert scripts(machine) == ["/tests/test.sh"]


@pytest.mark.parametrize("stage", ["oracle", "noop"])
def test_set_up_comes_first_and_is_gone_later(fake_machine, question, tmp_path, stage):
    machine = fake_machine(writes_reward("1"))
    ask(stage, machine, question(make_task(tmp_path, files={"setup_files/setup.sh": "x"})))
    assert scripts(machine)[0] == "/setup_files/setup.sh"
    assert "/setup_files" in targets(machine.sandbox.containers[0])
    assert not any("/setup_files" in targets(container) for container in machine.sandbox.containers[1:])


@pytest.mark.parametrize("stage", ["oracle", "noop"])
@pytest.mark.parametrize(("network", "expected"), [("task", "public"), ("none", "needs-network")])
def test_public_network(fake_machine, question, tmp_path, stage, network, expected):
    machine = fake_machine(writes_reward("1" if stage == "oracle" else "0"), network=network)
    result, _ = ask(stage, machine, question(make_task(tmp_path, toml="")))
    if expected == "public":
        assert result.reason == "expected"
        assert machine.sandbox.containers[-1].spec.network == "public"
    else:
        assert (result.reason, result.verdict) == (expected, Verdict.NA)


FAULTS = [name for name, reason in REASONS.items() if reason.verdict is not Verdict.PASS]


@pytest.mark.parametrize("stage", ["build", "oracle", "noop"])
@pytest.mark.parametrize("reason", FAULTS)
def test_image_that_cannot_be_made(fake_machine, question, stage, reason):
    images = FakeImages(fault=lambda request: Conclusion(reason, "headline", "log"))
    result, _ = ask(stage, fake_machine(images=images), question())
    blocked = stage != "build" and REASONS[reason].verdict is Verdict.FAIL and reason != "bad-task"
    assert result.reason == ("image-failed" if blocked else reason)
    assert "headline" in result.headline
    assert result.log == "log"


@pytest.mark.parametrize("stage", ["build", "oracle", "noop"])
def test_log_of_builds_is_evidence(fake_machine, question, tmp_path, stage):
    class Logging(FakeImages):
        def ensure(self, request, log=None):
            logs.append(log)
            return super().ensure(request)

    logs = []
    files = {"tests/Dockerfile": "FROM x\n"}
    asked = question(make_task(tmp_path, toml=TOML + 'environment_mode = "separate"\n', files=files))
    ask(stage, fake_machine(images=Logging()), asked)
    assert logs[:2] == [asked.evidence / "build.txt"] * 2


def test_image_of_a_separate_verifier_blocks_too(fake_machine, question, tmp_path):
    files = {"tests/Dockerfile": "FROM x\n"}
    task = make_task(tmp_path, toml=TOML + 'environment_mode = "separate"\n', files=files)

    def fault(request):
        return Conclusion("build-failed", "tests/Dockerfile:1") if request.context == task.path / "tests" else None

    for stage, reason in (("build", "build-failed"), ("oracle", "image-failed"), ("noop", "image-failed")):
        result, _ = ask(stage, fake_machine(images=FakeImages(fault=fault)), question(task))
        assert result.reason == reason


def test_missing_solution_asks_for_no_image(fake_machine, question, tmp_path):
    images = FakeImages()
    result, _ = ask("oracle", fake_machine(images=images), question(make_task(tmp_path, solve=None)))
    assert (result.reason, images.requests) == ("no-solution", [])


def test_solution_that_fails(fake_machine, question):
    def script(container, command):
        writes_reward("1")(container, command)
        return Answer(status=3) if command.argv[-1] == "/solution/solve.sh" else None

    for rules, reason in (("harbor", "expected"), ("default", "expected"), ("strict", "solution-failed")):
        result, _ = ask("oracle", fake_machine(script, rules=rules), question())
        assert result.reason == reason
        assert result.facts["trials"][0]["steps"][0]["agent_status"] == 3


def service(passes_in, left_alive=1):
    """The solution leaves a service; the verifier is content in the scopes named."""

    def script(container, command):
        scope = "trial" if "/solution" in targets(container) and "/tests" in targets(container) else "phase"
        if command.argv[-1] == "/tests/test.sh":
            (container.bound("/logs/verifier") / "reward.txt").write_text(str(int(scope in passes_in)))
        return Answer(left_alive=left_alive if command.argv[-1] == "/solution/solve.sh" else 0)

    return script


def test_service_that_has_to_go_on(fake_machine, question):
    result, _ = ask("oracle", fake_machine(service({"trial"})), question())
    assert (result.reason, result.facts["scope"], result.facts["isolation"]) == ("expected", "trial", "none")
    first, second = result.facts["trials"]
    assert (first["scope"], first["class"], first["steps"][0]["left_alive"]) == ("phase", "wrong-reward", 1)
    assert (second["scope"], second["class"]) == ("trial", "expected")
    assert Path(question().evidence, "scope-trial").is_dir()


def test_service_that_does_not_help(fake_machine, question):
    result, _ = ask("oracle", fake_machine(service(set())), question())
    assert (result.reason, result.facts["scope"]) == ("wrong-reward", "phase")


@pytest.mark.parametrize(("passes_in", "left_alive"), [({"phase"}, 1), ({"trial"}, 0)])
def test_no_second_trial_without_need(fake_machine, question, passes_in, left_alive):
    result, _ = ask("oracle", fake_machine(service(passes_in, left_alive)), question())
    assert [trial["scope"] for trial in result.facts["trials"]] == ["phase"]


def test_noop_is_never_repeated(fake_machine, question):
    machine = fake_machine(lambda container, command: Answer(left_alive=1))
    result, _ = ask("noop", machine, question())
    assert (result.reason, len(machine.sandbox.containers)) == ("no-reward", 1)


@pytest.mark.parametrize("stage", ["oracle", "noop"])
@pytest.mark.parametrize("declared_by", ["task", "dataset"])
def test_declared_scope(fake_machine, question, tmp_path, stage, declared_by):
    toml = TOML + ('[metadata.otval]\nprocess_scope = "trial"\n' if declared_by == "task" else "")
    settings = {"isolation": "none"} if declared_by == "dataset" else {}
    machine = fake_machine(writes_reward("1" if stage == "oracle" else "0"))
    result, _ = ask(stage, machine, question(make_task(tmp_path, toml=toml), **settings))
    assert (result.reason, result.facts["scope"], result.facts["isolation"]) == ("expected", "trial", "none")
    (container,) = machine.sandbox.containers
    assert {"/logs/verifier", "/.otval-inbox"} <= targets(container)
    assert ("/tests" in targets(container)) is (declared_by == "task")
    assert ("/solution" in targets(container)) is (stage == "oracle")


@pytest.mark.parametrize(
    ("ended", "solve", "test"),
    [
        ("timeout", "agent-timeout", "verifier-timeout"),
        ("memory", "memory-limit", "memory-limit"),
        ("storage", "storage-limit", "storage-limit"),
        ("refused", "bad-task", "bad-task"),
    ],
)
def test_limits(fake_machine, question, ended, solve, test):
    for script_name, reason in (("/solution/solve.sh", solve), ("/tests/test.sh", test)):

        def script(container, command, name=script_name):
            return Answer(ended, None, b"why\n") if command.argv[-1] == name else None

        result, retries = ask("oracle", fake_machine(script), question())
        assert (result.reason, retries) == (reason, 0)
        assert "why" in result.log + result.headline


def test_container_that_is_killed_is_tried_again(fake_machine, question):
    kills = iter([True, False])

    def script(container, command):
        if command.argv[-1] == "/solution/solve.sh" and next(kills):
            return Answer("killed", None)
        return writes_reward("1")(container, command)

    result, retries = ask("oracle", fake_machine(script), question())
    assert (result.reason, retries) == ("expected", 1)


@pytest.mark.parametrize(("number", "reason", "verdict"), [(0, "no-start", "error"), (1, "tampered", "fail")])
def test_container_that_does_not_start(fake_machine, question, number, reason, verdict):
    machine = fake_machine(writes_reward("1"))
    machine.sandbox.refuses = lambda found: "said why" if found >= number else ""
    result, _ = ask("oracle", machine, question())
    assert (result.reason, result.verdict) == (reason, verdict)
    assert "said why" in result.headline


def test_folder_is_removed_after_a_fault_and_kept_on_demand(fake_machine, question, monkeypatch):
    machine = fake_machine(lambda container, command: Answer("timeout", None))
    result, _ = ask("oracle", machine, question())
    assert result.reason == "setup-timeout"
    assert not list(machine.scratch.folder.glob("trial-*"))
    bench = machine.bench()
    monkeypatch.setattr(machine, "bench", lambda: replace(bench, keep=True))
    ask("oracle", machine, question())
    assert len(list(machine.scratch.folder.glob("trial-*"))) == 1


STEPS = TOML + "".join(
    f'[[steps]]\nname = "{name}"\n{least}\n[steps.verifier]\ntimeout_sec = 5.0\n'
    for name, least in (("one", "min_reward = 1.0"), ("two", ""))
)
STEP_FILES = {f"steps/{name}/{path}": "x" for name in ("one", "two") for path in ("solution/solve.sh", "tests/test.sh")}


def graded(*contents):
    """test.sh of each step leaves these files, as {name: text}."""
    left = iter(contents)

    def script(container, command):
        if command.argv[-1] == "/tests/test.sh":
            for name, text in next(left).items():
                (container.bound("/logs/verifier") / name).write_text(text)

    return script


TXT = "reward.txt"
CONFLICT = {"reward.json": '{"reward": 1}', TXT: "0"}


@pytest.mark.parametrize(
    ("contents", "rules", "reason", "steps"),
    [
        ([{TXT: "1"}, {TXT: "1"}], "default", "expected", 2),
        ([{TXT: "0.5"}, {TXT: "1"}], "default", "wrong-reward", 1),
        ([{TXT: "1"}, {TXT: "0"}], "default", "wrong-reward", 2),
        ([{}, {TXT: "1"}], "default", "no-reward", 1),
        ([CONFLICT, {TXT: "1"}], "default", "reward-conflict", 2),
        ([CONFLICT, {TXT: "1"}], "harbor", "expected", 2),
        ([CONFLICT, {TXT: "0"}], "harbor", "reward-conflict", 2),
        ([CONFLICT, {}], "default", "reward-conflict", 2),
    ],
)
def test_steps(fake_machine, question, tmp_path, contents, rules, reason, steps):
    task = make_task(tmp_path, solve=None, test=None, toml=STEPS, files=STEP_FILES)
    result, _ = ask("oracle", fake_machine(graded(*contents), rules=rules), question(task))
    assert result.reason == reason
    assert len(result.facts["trials"][0]["steps"]) == steps


def test_users_workdir_and_variables(fake_machine, question, tmp_path, monkeypatch):
    monkeypatch.setenv("OTVAL_TOKEN", "secret")
    toml = """
[environment]
network_mode = "no-network"
workdir = "/work"
env = { A = "env", B = "env" }
[agent]
user = "agent"
timeout_sec = 11.0
[verifier]
user = "grader"
timeout_sec = 12.0
env = { B = "verifier" }
[solution]
env = { B = "${OTVAL_TOKEN}" }
"""
    machine = fake_machine(
        writes_reward("1"), images=FakeImages(ImageConfig(env={"PATH": "/p", "A": "image"}, user="u"))
    )
    result, _ = ask("oracle", machine, question(make_task(tmp_path, toml=toml)))
    assert result.reason == "expected"
    solve, test = (command for command in machine.sandbox.commands if command.argv[-1].endswith(".sh"))
    assert (solve.user, solve.workdir, solve.seconds) == ("agent", "/work", 11.0)
    assert solve.env == {"PATH": "/p", "A": "env", "B": "secret", "DEBIAN_FRONTEND": "noninteractive"}
    assert (test.user, test.workdir) == ("grader", "/work")
    assert 0 < test.seconds <= 12.0
    assert test.env == {"PATH": "/p", "A": "env", "B": "verifier", "OT_PYTHON": "python3"}


def test_missing_variable(fake_machine, question, tmp_path, monkeypatch):
    monkeypatch.delenv("OTVAL_TOKEN", raising=False)
    toml = TOML + '[solution]\nenv = { TOKEN = "${OTVAL_TOKEN}" }\n'
    result, _ = ask("oracle", fake_machine(writes_reward("1")), question(make_task(tmp_path, toml=toml)))
    assert (result.reason, result.verdict) == ("env-missing", Verdict.FAIL)


@pytest.mark.parametrize("dockerfile", [True, False])
def test_environment_of_a_prebuilt_image_is_copied_in(fake_machine, question, tmp_path, dockerfile):
    toml = TOML.replace("[environment]", '[environment]\ndocker_image = "some/image:1"')
    task = make_task(tmp_path, toml=toml, files={"environment/data.txt": "x"})
    if not dockerfile:
        (task.path / "environment" / "Dockerfile").unlink()
    machine = fake_machine(writes_reward("0"))
    result, _ = ask("noop", machine, question(task))
    assert result.verdict is Verdict.PASS
    copied = [command for command in machine.sandbox.commands if "/environment/." in command.argv[-1]]
    assert len(copied) == (0 if dockerfile else 1)
