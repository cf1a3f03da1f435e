"""hermetic over a fake sandbox: three trials, and what is said of them."""

import pytest

from pytest_otval.core import Conclusion, Severity
from pytest_otval.sandbox.base import UPPER
from pytest_otval.stages.question import Question
from pytest_otval.task.dataset import DatasetSettings
from selftests.fakes import TOML, Answer, FakeImages, ask, make_task
from selftests.runtimes.made import write_squashfs
from selftests.sandbox.test_traffic import RESOLVER, query, tcp, udp

UNSAID = TOML.replace('network_mode = "no-network"', "")
PUBLIC = TOML.replace("no-network", "public")


class World:
    """A container whose verifier pays the solution as these say, by network."""

    def __init__(self, public="1", none="1", noop="0", unheard="", writes=None, asks=None):
        self.pays = {"public": public, "none": none}
        self.noop = noop
        self.unheard = unheard
        self.writes, self.asks = writes or {}, asks or {}
        self.solved = False
        self.networks = []
        self.layers = []
        """What was done to the writable layer since the solution ran."""
        self.only_fresh = False
        """Whether the solution's work is in folders of the system."""

    def __call__(self, container, command):
        last = command.argv[-1]
        spec = container.spec
        if not last.startswith(("/solution/", "/tests/", "check")):
            return
        if spec.traffic is not None:
            spec.traffic.unheard = self.unheard
            for packet in self.asks.get(last, ()):
                spec.traffic.hear(packet)
        for path in self.writes.get(last, ()):
            file = spec.overlay / UPPER / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("x")
        if last == "/solution/solve.sh":
            self.solved = True
            self.layers.clear()
        if last == "/tests/test.sh":
            self.networks.append(spec.network)
            paid = self.pays[spec.network] if self.solved else self.noop
            if self.only_fresh and ("restored", "usr") in self.layers:
                paid = "0"
            self.solved = False
            if paid:
                (container.bound("/logs/verifier") / "reward.txt").write_text(paid)


@pytest.fixture
def hermetic(fake_machine, tmp_path):
    def run(world, toml=UNSAID, solve="true", test="true", images=None, **verdict):
        task = make_task(tmp_path, solve, test, toml)
        machine = fake_machine(world, images=images, **verdict)
        machine.sandbox.layers = world.layers
        return ask("hermetic", machine, Question(task, DatasetSettings(), tmp_path / "evidence"))[0]

    return run


def findings(result):
    return {one["check"]: one for one in result.facts["checks"]}


def test_sound(hermetic):
    world = World()
    result = hermetic(world)
    assert (result.reason, findings(result)) == ("expected", {})
    assert world.networks == ["public", "none", "public"]
    assert [(one["agent"], one["headline"]) for one in result.facts["trials"]] == [
        ("oracle", "with-network"),
        ("oracle", "without-network"),
        ("noop", "noop"),
    ]
    told, paid = result.facts["hermetic"], {"class": "expected", "score": 1.0}
    assert told["rewards"] == dict.fromkeys(("with-network", "without-network"), paid)
    assert (told["declared"], told["keep"]) == ("public", [])


@pytest.mark.parametrize(
    ("toml", "public", "none", "reason", "severity"),
    [
        (UNSAID, "1", "0", "not-hermetic", "error"),
        (UNSAID, "0", "1", "not-hermetic", "error"),
        (PUBLIC, "1", "0", "expected", "info"),
        (PUBLIC, "0", "1", "not-hermetic", "error"),
        (TOML, "1", "0", "not-hermetic", "error"),
        (TOML, "0", "1", "not-hermetic", "error"),
        (UNSAID, "1", "", "not-hermetic", "error"),
    ],
)
def test_reward_that_the_network_decides(hermetic, toml, public, none, reason, severity):
    result = hermetic(World(public, none), toml)
    assert result.reason == reason
    assert findings(result)["hermetic-reward"]["severity"] == severity


def test_auto_uses_the_level_that_works(hermetic, tmp_path):
    image = write_squashfs(tmp_path / "image.sqfs", {"/etc/hostname": ""})
    world = World(writes={"/solution/solve.sh": ["usr/bin/x"]})
    world.only_fresh = True
    result = hermetic(world, images=FakeImages(files=(image,)), isolation="auto")
    assert (result.reason, result.facts["isolation"]) == ("expected", "fresh")
    told = [(one["agent"], one["isolation"], one["headline"].partition(";")[0]) for one in result.facts["trials"]]
    assert [(one[0], one[1]) for one in told if one[2] == "level"] == [
        ("oracle", "pristine"),
        ("oracle", "masked"),
        ("oracle", "fresh"),
        ("noop", "fresh"),
    ]
    assert [one for one in told if one[2] != "level"] == [
        ("oracle", "fresh", "with-network"),
        ("oracle", "fresh", "without-network"),
        ("noop", "fresh", "noop"),
    ]
    assert result.facts["hermetic"]["keep"] == ["/usr/bin/"]


@pytest.mark.parametrize(("paid", "told"), [(["0", "1", "1"], "trial"), (["0", "0", "1"], "phase")])
def test_what_is_told_is_that_of_the_trial_that_counts(hermetic, paid, told):
    """A solution that leaves services is tried in one container, too."""
    answers = iter(paid)
    tries = iter(["phase", "trial"])

    class Serving(World):
        def __call__(self, container, command):
            if command.argv[-1] == "/tests/test.sh" and self.solved:
                self.pays = dict.fromkeys(self.pays, next(answers))
            if command.argv[-1] == "/solution/solve.sh":
                self.writes = {"/tests/test.sh": [f"root/{next(tries, 'x')}"]}
            super().__call__(container, command)
            return Answer(left_alive=1) if command.argv[-1] == "/solution/solve.sh" else None

    result = hermetic(Serving())
    assert result.facts["hermetic"]["verifier_wrote"]["paths"] == [f"/root/{told}"]


def test_phases_with_networks_of_their_own(hermetic):
    """With the network a task is as it is: a verifier without one may count on that."""

    class Mixed(World):
        def __call__(self, container, command):
            if command.argv[-1] == "/solution/solve.sh":
                self.pays = {"public": "0", "none": "1" if container.spec.network == "public" else "0"}
            super().__call__(container, command)

    toml = TOML.replace("[agent]", '[agent]\nnetwork_mode = "public"')
    world = Mixed()
    result = hermetic(world, toml)
    assert world.networks == ["none", "none", "none"]
    assert (result.reason, findings(result)["hermetic-reward"]["severity"]) == ("expected", "info")


def test_scores_that_differ_and_are_both_paid(hermetic, tmp_path, fake_machine):
    task = make_task(tmp_path, toml=UNSAID)
    settings = DatasetSettings(oracle_min=0.5)
    question = Question(task, settings, tmp_path / "evidence")
    result, _ = ask("hermetic", fake_machine(World("1", "0.75")), question)
    assert (result.reason, list(findings(result))) == ("expected", ["hermetic-score"])
    strict, _ = ask("hermetic", fake_machine(World("1", "0.75"), severity=Severity.WARNING), question)
    assert strict.reason == "not-hermetic"


def test_a_solution_that_is_never_paid_shows_nothing(hermetic):
    result = hermetic(World("0", "0"))
    assert result.reason == "wrong-reward"
    assert result.headline.startswith("the reference solution is not paid, with the network or without: ")
    assert len(result.facts["trials"]) == 2


def test_what_is_asked_has_a_place(hermetic):
    asks = {
        "/solution/solve.sh": [udp(RESOLVER, 53, query(b"pypi", b"org"))],
        "/tests/test.sh": [tcp("192.0.2.1", 443), *[tcp("192.0.2.2", port) for port in range(1, 9)]],
    }
    result = hermetic(World(asks=asks), solve="true\ncurl https://pypi.org/x", test="# curl\n\napt-get -q install x")
    found = findings(result)
    solution, verifier = found["hermetic-solution-network"], found["hermetic-verifier-network"]
    assert (solution["path"], solution["line"], solution["severity"]) == ("solution/solve.sh", 3, "info")
    assert (verifier["path"], verifier["line"], verifier["severity"]) == ("tests/test.sh", 4, "warning")
    assert verifier["message"].startswith("the verifier asks the network for tcp 192.0.2.1:443, ")
    assert verifier["message"].endswith(" and 4 more")
    assert result.reason == "expected"


def test_what_was_not_observed_is_not_nothing(hermetic):
    found = findings(hermetic(World(unheard="no packet socket can be opened: Operation not permitted")))
    for check in ("hermetic-solution-network", "hermetic-verifier-network"):
        assert "was not observed: no packet socket" in found[check]["message"]


def test_writes(hermetic):
    writes = {"/tests/test.sh": ["root/x", "tmp/y", "var/tmp/z", "usr/lib/__pycache__/a.pyc", "app/\x1b[2J"]}
    result = hermetic(World(writes=writes))
    told = result.facts["hermetic"]["verifier_wrote"]
    assert (sorted(told["paths"]), told["count"], told["whole"]) == (["/app/\\x1b[2J", "/root/x"], 2, True)
    assert findings(result)["hermetic-verifier-writes"]["severity"] == "info"


def test_what_changes_without_an_agent(hermetic):
    toml = f'{UNSAID}\n[environment.healthcheck]\ncommand = "check"\n'
    result = hermetic(World(writes={"check": ["app/count"], "/solution/solve.sh": ["usr/bin/x"]}), toml)
    assert result.facts["hermetic"]["noop_changed"]["paths"] == ["/app/count"]
    assert findings(result)["hermetic-noop-changes"]["severity"] == "warning"
    assert result.facts["hermetic"]["keep"] == ["/usr/bin/x"]


def test_a_proposal_leaves_out_what_noop_changes_too(hermetic):
    toml = f'{UNSAID}\n[environment.healthcheck]\ncommand = "check"\n'
    writes = {"check": ["etc/count"], "/solution/solve.sh": ["etc/count", "etc/real"]}
    result = hermetic(World(writes=writes), toml)
    assert result.facts["hermetic"]["keep"] == ["/etc/real"]
    assert findings(result)["keep-proposed"]["fix"] == '[metadata.otval] keep = ["/etc/real"]'


@pytest.mark.parametrize(
    ("toml", "settings", "reason"),
    [
        (UNSAID, {"network": "none"}, "needs-network"),
        (TOML, {"network": "none"}, "needs-network"),
        (TOML.replace('"no-network"', '"allowlist"\nallowed_hosts = ["a.b"]'), {}, "allowlist"),
    ],
)
def test_what_cannot_be_compared(hermetic, toml, settings, reason):
    result = hermetic(World(), toml, **settings)
    assert (result.reason, result.verdict) == (reason, "n/a")


def test_no_solution(hermetic):
    assert hermetic(World(), solve=None).reason == "no-solution"


def test_an_image_that_cannot_be_built(hermetic):
    images = FakeImages(fault=lambda request: Conclusion("build-failed", "x"))
    assert hermetic(World(), images=images).reason == "image-failed"
