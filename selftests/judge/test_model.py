"""Reviews go into the ledger and come back."""

import json

import pytest

from pytest_otval.judge.model import Evidence, Judgement, Opinion, Review, Spending


def a_review():
    opinion = Opinion("weak", "fail", "too weak", (Evidence("tests/test.sh", "exit 0", 3),), "check it", "echo 1")
    judgement = Judgement("weak", "fail", ("fail", "pass", "fail"), opinion, "executed", "score 1")
    return Review("instruction", "", "abc", "some/model", (judgement,), 0.5, ("x.bin",), Spending(3, 1, 100, 20, 0.1))


def test_a_review_survives_json():
    review = a_review()
    assert Review.from_dict(json.loads(json.dumps(review.as_dict()))) == review


def places(value, at=()):
    """Where values stand in JSON data."""
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*at, key))


VALUES = json.loads(json.dumps(a_review().as_dict()))


@pytest.mark.parametrize("at", list(places(VALUES))[1:], ids=str)
def test_what_somebody_else_wrote_is_a_review_or_none(at):
    """No value of a wrong type comes through."""
    values = json.loads(json.dumps(VALUES))
    *outer, last = at
    place = values
    for key in outer:
        place = place[key]
    place[last] = [{"odd": 1}]
    with pytest.raises(ValueError, match="validation error"):
        Review.from_dict(values)


def test_spending_adds_up():
    assert Spending(1, 0, 10, 5) + Spending(2, 2) == Spending(3, 2, 10, 5, None)
    assert (Spending(usd=0.5) + Spending()).usd == 0.5
