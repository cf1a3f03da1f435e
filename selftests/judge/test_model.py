"""Reviews go into the ledger and come back."""

import json

from pytest_otval.judge.model import Evidence, Judgement, Opinion, Review, Spending


def test_a_review_survives_json():
    opinion = Opinion("weak", "fail", "too weak", (Evidence("tests/test.sh", "exit 0", 3),), "check it", "echo 1")
    judgement = Judgement("weak", "fail", ("fail", "pass", "fail"), opinion, "executed", "score 1")
    review = Review("instruction", "", "abc", "some/model", (judgement,), 0.5, ("x.bin",), Spending(3, 1, 100, 20, 0.1))
    assert Review.from_dict(json.loads(json.dumps(review.as_dict()))) == review


def test_spending_adds_up():
    assert Spending(1, 0, 10, 5) + Spending(2, 2) == Spending(3, 2, 10, 5, None)
    assert (Spending(usd=0.5) + Spending()).usd == 0.5
