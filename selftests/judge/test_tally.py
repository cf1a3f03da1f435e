"""Precision, recall and kappa, against enumeration and what others compute."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.judge.model import Criterion, Evidence, Judgement, Opinion, Review, Rubric
from pytest_otval.judge.seeding.texts import Fault
from pytest_otval.judge.tally import Share, Tally, tallies, total

COUNTS = st.integers(0, 40)
TALLIES = st.builds(Tally, st.just("a"), COUNTS, COUNTS, COUNTS, COUNTS)
RUBRIC = Rubric("instruction", (Criterion("a", "?"), Criterion("b", "?")))


def judgement(criterion, outcome="fail", standing="stands", document="tests/test.sh"):
    evidence = (Evidence(document, "words", 1),)
    return Judgement(criterion, outcome, (outcome,), Opinion(criterion, outcome, evidence=evidence), standing)


def review(*judgements):
    return Review("instruction", "", "r", "m", judgements)


def fault(criterion):
    return Fault("s", criterion, {}, Evidence("tests/test.sh", "words"), ("instruction.md",))


@given(TALLIES)
def test_against_single_cases(tally):
    """Cohen's kappa as (observed - expected) / (1 - expected), over pairs of truth and answer."""
    pairs = [(True, True)] * tally.found + [(True, False)] * tally.missed
    pairs += [(False, True)] * tally.raised + [(False, False)] * tally.quiet
    measured = {truth for truth, _ in pairs} == {True, False}
    assert tally.is_measured is measured
    found = [truth for truth, says in pairs if says]
    assert tally.precision.rate == (sum(found) / len(found) if found and measured else None)
    faults = [says for truth, says in pairs if truth]
    assert tally.recall.rate == (sum(faults) / len(faults) if faults else None)
    if not measured:
        assert tally.kappa is None
        return
    count = len(pairs)
    agreed = Fraction(sum(truth == says for truth, says in pairs), count)
    shares = [Fraction(sum(pair[side] for pair in pairs), count) for side in (0, 1)]
    chance = shares[0] * shares[1] + (1 - shares[0]) * (1 - shares[1])
    assert tally.kappa == pytest.approx(float((agreed - chance) / (1 - chance)), abs=1e-12)


@given(TALLIES, st.floats(0, 1))
def test_bounds(tally, floor):
    assert tally.kappa is None or -1 <= tally.kappa <= 1
    for share in (tally.precision, tally.recall):
        if share.rate is not None:
            assert 0 <= share.interval.low <= share.rate <= share.interval.high <= 1
            assert str(share).startswith(f"{share.rate:.2f} ({share.hits}/{share.count}, ")
    if not tally.is_measured:
        assert not tally.is_below(floor)


def test_a_published_kappa():
    """Cohen's kappa of 20 yes/yes, 5, 10, 15 no/no is 0.4 in many textbooks."""
    assert Tally("a", 20, 5, 10, 15).kappa == pytest.approx(0.4)


@given(st.integers(1, 40), st.integers(1, 40))
def test_extremes(faults, sound):
    right = Tally("a", found=faults, quiet=sound)
    assert (right.precision.rate, right.recall.rate, right.kappa) == (1, 1, 1)
    every = Tally("a", found=faults, raised=sound)
    assert (every.precision.rate, every.recall.rate, every.kappa) == (faults / (faults + sound), 1, 0)
    nothing = Tally("a", missed=faults, quiet=sound)
    assert (nothing.precision.rate, nothing.recall.rate, nothing.kappa) == (None, 0, 0)
    assert (right.assured > 0.2, every.assured < 0.5, nothing.assured) == (True, True, 0)


@pytest.mark.parametrize(
    ("tally", "is_below"),
    [
        (Tally("a", found=9, quiet=9), False),
        (Tally("a", found=8, quiet=9), True),
        (Tally("a", found=900, missed=100, raised=250, quiet=750), False),
        (Tally("a", found=900, missed=100, raised=500, quiet=500), True),
        (Tally("a", found=9000, raised=40), True),
        (Tally("a", missed=40, quiet=40), True),
        (Tally("a", raised=9), False),
        (Tally("a", agreed=2, disagreed=3), False),
        (Tally("a", agreed=0, disagreed=3), True),
        (Tally("a", found=9, quiet=9, agreed=1, disagreed=9), True),
        (Tally("a", found=9, quiet=9, agreed=9), False),
    ],
)
def test_a_floor(tally, is_below):
    assert tally.is_below(0.7) is is_below


@given(TALLIES, st.integers(2, 20))
def test_how_many_faults_are_seeded_makes_no_claim(tally, times):
    """More of the same assures more, but never more than precision at even odds; chance assures nothing."""
    if not tally.is_measured:
        assert tally.assured is None
        return
    more = Tally("a", *(times * one for one in (tally.found, tally.missed, tally.raised, tally.quiet)))
    assert tally.assured <= more.assured + 1e-9
    alarms = tally.raised / (tally.raised + tally.quiet)
    if tally.recall.rate + alarms:
        assert more.assured <= tally.recall.rate / (tally.recall.rate + alarms) + 1e-9
    if tally.recall.rate <= alarms:
        assert more.assured <= 0.5


def test_nothing_is_nothing():
    assert str(Share(0, 0)) == "-"
    assert (Share(0, 0).rate, Share(0, 0).interval) == (None, None)


def test_a_seeded_fault_says_something_of_its_own_criterion_alone():
    reviews = [
        (None, review(judgement("a"), judgement("b", "pass", None))),
        (None, review(judgement("a", standing="refuted"), judgement("b", "uncertain", "split"))),
        (fault("a"), review(judgement("a"), judgement("b"))),
        (fault("a"), review(judgement("a", document="task.toml"), judgement("b"))),
        (fault("a"), review(judgement("a", "not_applicable", None), judgement("b"))),
        (fault("b"), review(judgement("a"), judgement("b", standing="advisory"), judgement("c"))),
    ]
    assert tallies(RUBRIC, reviews, {"b": (3, 1), "c": (1, 1)}) == (
        Tally("a", found=2, missed=1, raised=1, quiet=1, placed=1),
        Tally("b", found=1, quiet=2, placed=1, agreed=3, disagreed=1),
    )


def test_total():
    counts = [Tally("a", 1, 2, 3, 4, 1, 5, 6), Tally("b", 10, 20, 30, 40, 10, 50, 60), Tally("c", raised=5, quiet=1)]
    assert total(counts) == Tally("all measured", 11, 22, 33, 44, 11, 55, 66)
