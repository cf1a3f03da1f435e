"""What reviews of the tests' judges come to."""

from dataclasses import replace

import pytest

from pytest_otval.judge.cache import VERSION, CachedChat
from pytest_otval.judge.model import Spending
from pytest_otval.judge.refute import refute
from pytest_otval.judge.review import UnreadableError, review
from pytest_otval.kept import Kept
from pytest_otval.llm.client import EndpointChat
from pytest_otval.profile import ModelSection
from selftests.judge.voters import MATERIAL, RUBRIC, PolicyChat
from selftests.llm.judges import Fault
from selftests.llm.policies import Policies
from selftests.llm.server import Running

FAULT = """
seed = 2
[[faults]]
criterion = "weak"
quote = "test -e /app/answer.txt"
candidate = "touch /app/answer.txt"
"""
POLICIES = Policies(faults=(Fault("weak", "test -e /app/answer.txt", "touch /app/answer.txt"),), seed=2)
ONE_FAULT = {"weak": "stands", "clear": "pass", "spelled": "pass"}


def reviewed(voters, votes=1):
    return refute(voters, RUBRIC, review(voters, RUBRIC, MATERIAL, votes=votes), MATERIAL)


def judged(folder, kind, votes=1, faults=POLICIES):
    kept = Kept(folder, VERSION)
    return reviewed(lambda vote: CachedChat(PolicyChat(faults, f"judge-{kind}", vote), kept, "data", {}, vote), votes)


def standings(told):
    return {one.criterion: one.standing or one.outcome for one in told.judgements}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("right", ONE_FAULT),
        ("verbose", ONE_FAULT),
        ("obeys", ONE_FAULT),
        ("obeys-outside", ONE_FAULT),
        ("flags-all", dict.fromkeys(ONE_FAULT, "stands")),
        ("hasty", {"weak": "stands", "clear": "refuted", "spelled": "refuted"}),
        ("misquotes", dict.fromkeys(ONE_FAULT, "uncertain")),
    ],
)
def test_what_stands_in_the_end(tmp_path, kind, expected):
    told = judged(tmp_path, kind)
    assert standings(told) == expected
    dropped = {one.opinion.dropped for one in told.judgements}
    assert dropped == ({"quote not found: what nobody ever wrote anywhere"} if kind == "misquotes" else {""})


@pytest.mark.parametrize("kind", ["unstructured", "cut"])
def test_what_cannot_be_read(tmp_path, kind):
    with pytest.raises(UnreadableError):
        judged(tmp_path, kind)


def test_the_right_judge_finds_nothing_where_nothing_is(tmp_path):
    told = judged(tmp_path, "right", faults=replace(POLICIES, faults=()))
    assert standings(told) == dict.fromkeys(ONE_FAULT, "pass")


def test_an_inconsistent_judge_does_not_agree_with_itself(tmp_path):
    told = [judged(tmp_path / str(seed), "inconsistent", 3, replace(POLICIES, seed=seed)) for seed in range(20)]
    assert any(one.kappa is not None and one.kappa < 0.5 for one in told)
    votes = {judgement.votes for one in told for judgement in one.judgements}
    assert {len(one) for one in votes} == {2, 3}
    assert told[3] == replace(judged(tmp_path / "again", "inconsistent", 3, replace(POLICIES, seed=3)))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    file = tmp_path_factory.mktemp("policies") / "policies.toml"
    file.write_text(FAULT)
    with Running(file) as running:
        yield running


@pytest.mark.parametrize("kind", ["right", "hasty"])
def test_a_review_over_an_endpoint_and_a_second_from_the_cache(tmp_path, server, kind):
    section = ModelSection(base_url=server.url, usd_in=1.0, usd_out=2.0)
    kept = Kept(tmp_path, VERSION)

    def voters(vote):
        chat = EndpointChat(f"judge-{kind}", section, fields={"seed": vote})
        return CachedChat(chat, kept, "data", {}, vote)

    first = reviewed(voters, votes=3)
    assert standings(first) == standings(judged(tmp_path / "other", kind))
    assert server.asked()["body"]["response_format"]["json_schema"]["strict"] is True
    spent = first.spending
    assert spent.usd == pytest.approx((spent.prompt + 2 * spent.completion) / 1e6)
    before = server.asked()["requests"]
    again = reviewed(voters, votes=3)
    assert server.asked()["requests"] == before
    assert again == replace(first, spending=Spending(spent.answers, spent.answers))
    kept.close()
