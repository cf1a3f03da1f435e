"""Answers of all kinds, and what is taken from them."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.judge.model import OUTCOMES, Criterion, Evidence, Opinion, Rubric
from pytest_otval.judge.opinions import (
    MOST_CANDIDATE,
    MOST_CHARS,
    MOST_EVIDENCE,
    MOST_TEXT,
    read_opinions,
)

RUBRIC = Rubric("instruction", (Criterion("weak", "?"), Criterion("clear", "?", not_applicable=False)))
FAIL = {
    "outcome": "fail",
    "explanation": "any file passes",
    "evidence": [{"document": "tests/test.sh", "quote": "test -e"}],
    "fix": "compare",
    "candidate": "touch x",
}
GOOD = {"criteria": {"weak": FAIL, "clear": {"outcome": "pass"}}}
READ = {
    "weak": Opinion("weak", "fail", "any file passes", (Evidence("tests/test.sh", "test -e"),), "compare", "touch x"),
    "clear": Opinion("clear", "pass"),
}


def answer(weak=FAIL, clear=None):
    return read_opinions(json.dumps({"criteria": {"weak": weak, "clear": clear or {"outcome": "pass"}}}), RUBRIC)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        json.dumps(GOOD["criteria"]),
        json.dumps({"criteria": [{"id": name, **values} for name, values in GOOD["criteria"].items()]}),
        f"Here it is:\n```json\n{json.dumps(GOOD, indent=2)}\n```\nI hope {{this}} helps.",
        f"<think>maybe {json.dumps({'criteria': {'weak': {'outcome': 'pass'}}})}</think>\n{json.dumps(GOOD)}",
        "{so} {it} {goes} {on} " * 500 + json.dumps(GOOD),
        json.dumps({"an": {"example": 1}}) * 500 + json.dumps(GOOD),
        f"The set {{1, 2}} and {{'a': 1}}: {json.dumps(GOOD)} " + json.dumps({"done": True}),
    ],
)
def test_an_answer_is_found_in_any_form(text):
    told = read_opinions(text, RUBRIC)
    assert (told.opinions, told.problems) == (READ, {})


@pytest.mark.parametrize(
    "text",
    ["", "no", "[]", "null", "{}", '{"criteria": 3}', '{"criteria": []}', '{"other": {}}', '{"criteria": {"weak": {'],
)
def test_what_is_no_answer_is_told(text):
    told = read_opinions(text, RUBRIC)
    assert told.opinions == {}
    assert told.problems == {"": "the answer holds no JSON object with the criteria"}


@pytest.mark.parametrize("value", ["fail", 3, ["fail"], True])
def test_an_answer_of_a_wrong_type_is_none(value):
    assert answer(value).problems == {"weak": "its answer is no object"}


@pytest.mark.parametrize("outcome", ["bad", "", None, 1, ["fail"], {"fail": 1}, "FAILURE"])
def test_an_unknown_outcome_is_no_opinion(outcome):
    told = answer({"outcome": outcome})
    assert list(told.opinions) == ["clear"]
    assert told.problems == {"weak": "its outcome must be one of pass, fail, not_applicable, uncertain"}


@pytest.mark.parametrize("word", ["N/A", "Not applicable", "not_applicable "])
def test_not_applicable_has_many_names_and_is_not_always_allowed(word):
    told = answer({"outcome": word}, {"outcome": word})
    assert told.opinions == {"weak": Opinion("weak", "not_applicable")}
    assert told.problems == {"clear": "its outcome must be one of pass, fail, uncertain"}


def test_missing_and_unknown_criteria_are_told():
    told = read_opinions(json.dumps({"criteria": {"weak": FAIL, "cle\x1b[31mar": {}, "x" * 99: {}}}), RUBRIC)
    assert list(told.opinions) == ["weak"]
    assert told.problems == {"clear": "it has no answer", "": "2 of its criteria do not exist"}


def test_an_unknown_criterion_alone_asks_for_no_repair():
    assert read_opinions(json.dumps({"criteria": {**GOOD["criteria"], "more": {}}}), RUBRIC).problems == {}


@pytest.mark.parametrize(
    "text",
    [
        '{"criteria": {"weak": {"outcome": "pass"}, "clear": {"outcome": "pass"}, "weak": {"outcome": "fail"}}}',
        '[{"criteria": [{"id": "weak"}, {"id": "clear", "outcome": "pass"}, {"id": "weak", "outcome": "fail"}]}]',
    ],
)
def test_two_answers_to_one_criterion_are_none(text):
    told = read_opinions(text, RUBRIC)
    assert list(told.opinions) == ["clear"]
    assert told.problems == {"weak": "it has two answers"}


@pytest.mark.parametrize(
    ("evidence", "problem"),
    [
        ("tests/test.sh:3", "its evidence is no list"),
        ({"document": "a", "quote": "b"}, "its evidence is no list"),
        ([3], "a piece of its evidence is no object with document and quote"),
        ([{"document": "a", "quote": "  "}], "a piece of its evidence is no object with document and quote"),
        ([{"document": 3}], "a piece of its evidence is no object with document and quote"),
    ],
)
def test_evidence_of_a_wrong_form_is_none(evidence, problem):
    told = answer({"outcome": "fail", "evidence": evidence})
    assert told.opinions["weak"] == Opinion("weak", "fail")
    assert told.problems == {"weak": problem}


def test_a_quote_without_a_document_may_still_be_found():
    told = answer({"outcome": "fail", "evidence": [{"quote": "b"}]})
    assert told.opinions["weak"].evidence == (Evidence("", "b"),)


def test_texts_are_cut_and_can_be_written_anywhere():
    values = {"outcome": "fail", "explanation": "\ud800\0" + "x" * MOST_TEXT, "fix": ["a"]}
    opinion = answer(values).opinions["weak"]
    assert opinion.explanation == ("?\ufffd" + "x" * MOST_TEXT)[:MOST_TEXT]
    assert opinion.fix == ""


def test_much_evidence_is_cut_and_a_long_candidate_is_none():
    evidence = [{"document": "a", "quote": "b"}] * (MOST_EVIDENCE + 5)
    told = answer({"outcome": "fail", "evidence": evidence, "candidate": "x" * (MOST_CANDIDATE + 1)})
    assert len(told.opinions["weak"].evidence) == MOST_EVIDENCE
    assert told.opinions["weak"].candidate == ""
    assert told.problems == {"weak": f"its candidate has more than {MOST_CANDIDATE} characters"}
    assert answer({"outcome": "fail", "candidate": "x" * MOST_CANDIDATE}).problems == {}


@pytest.mark.parametrize(
    "text",
    [
        "{" * 400_000,
        '{"criteria":' * 50_000,
        '{"criteria": {"weak": ' + "[" * 200_000 + "]" * 200_000 + "}}",
        '{"criteria": {"weak": ' + "9" * 10_000 + "}}",
        json.dumps(GOOD) + " " * MOST_CHARS,
    ],
    ids=["open", "nested", "deep", "digits", "long"],
)
def test_what_is_made_to_hurt_is_no_answer(text):
    assert read_opinions(text, RUBRIC).opinions == {}


def test_few_unknown_criteria_are_told():
    told = read_opinions(json.dumps({"weak": {}, **{f"c{number}": {} for number in range(10**4)}}), RUBRIC)
    assert len(told.problems[""]) < 100


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([*OUTCOMES, "weak"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["criteria", "weak", "clear", "id", "outcome", "evidence", "document", "quote"])
            | st.text(),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JSON, st.text(max_size=20), st.text(max_size=20))
def test_nothing_is_raised_and_all_can_be_written(values, before, after):
    told = read_opinions(before + json.dumps(values) + after, RUBRIC)
    assert all(one.criterion == name for name, one in told.opinions.items())
    for opinion in told.opinions.values():
        json.dumps(asdict(opinion), ensure_ascii=False).encode()
    assert all(problem.isprintable() for problem in told.problems.values())


@given(st.text())
def test_any_text_is_read(text):
    assert len(read_opinions(text, RUBRIC).opinions) <= 2
