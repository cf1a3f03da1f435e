"""Fails, and what a refuter leaves of them."""

import json
from dataclasses import replace

import pytest

from pytest_otval.judge.model import Spending
from pytest_otval.judge.refute import UNREADABLE, refute
from pytest_otval.judge.review import review
from selftests.judge.voters import MATERIAL, RUBRIC, UNCLEAR, WEAK, Judges, opinions
from selftests.llm.scripted import said


@pytest.fixture
def reviewed(tmp_path):
    return review(Judges(tmp_path / "review", [opinions(WEAK)]), RUBRIC, MATERIAL)


def verdict(word, **more):
    return said(json.dumps({"explanation": "because", "verdict": word, **more}))


def refuted(folder, reviewed, *says):
    judges = Judges(folder, says)
    return refute(judges, RUBRIC, reviewed, MATERIAL), judges


@pytest.mark.parametrize(
    ("reply", "standing", "why"),
    [
        (verdict("stands"), "stands", "because"),
        (said('Well.\n```json\n{"verdict": "Stands "}\n```'), "stands", ""),
        (verdict("refuted"), "refuted", "because"),
        (verdict("unsure"), "refuted", "because"),
        (verdict("it stands"), "refuted", UNREADABLE),
        (verdict(True), "refuted", UNREADABLE),
        (said('{"verdict": "stands", "verdict": "refuted"}'), "refuted", UNREADABLE),
        (said('{"verdict": "stands"'), "refuted", UNREADABLE),
        (said("It stands."), "refuted", UNREADABLE),
        (said("", finish="content_filter"), "refuted", UNREADABLE),
    ],
)
def test_only_what_could_not_be_refuted_stands(tmp_path, reviewed, reply, standing, why):
    told, _ = refuted(tmp_path, reviewed, reply)
    weak, *others = told.judgements
    assert (weak.standing, weak.why) == (standing, why)
    assert replace(weak, standing=None, why="") == reviewed.judgements[0]
    assert others == list(reviewed.judgements[1:])
    assert told.spending == Spending(2, 0, 20, 10)


def test_each_fail_is_a_conversation_of_its_own(tmp_path):
    reviewed = review(Judges(tmp_path / "review", [opinions(WEAK, UNCLEAR)]), RUBRIC, MATERIAL)
    told, judges = refuted(tmp_path, reviewed, verdict("stands"), verdict("refuted"))
    assert [one.standing for one in told.judgements] == ["stands", "refuted", None]
    asked = judges.chats[0].asked
    assert [len(messages) for messages in asked] == [2, 2]
    assert ["`weak`" in messages[-1]["content"] for messages in asked] == [True, False]
    assert [one["json_schema"]["name"] for one in judges.chats[0].formats] == ["verdict"] * 2


def test_without_a_fail_nobody_is_asked(tmp_path):
    reviewed = review(Judges(tmp_path, [opinions()], [opinions(clear=UNCLEAR)]), RUBRIC, MATERIAL, votes=2)
    told, judges = refuted(tmp_path, reviewed)
    assert judges.asked == [0]
    assert told == reviewed
    assert [one.standing for one in told.judgements] == [None, "split", None]


def test_what_was_understood_is_known_the_next_time(tmp_path, reviewed):
    refuted(tmp_path, reviewed, said("nothing"))
    refuted(tmp_path, reviewed, verdict("stands"))
    told, judges = refuted(tmp_path, reviewed)
    assert (told.judgements[0].standing, judges.asked) == ("stands", [0])
    assert told.spending == reviewed.spending + Spending(1, 1)
