"""The language of --select: what it can say, and that it can say nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import OtvalUsageError
from pytest_otval.report.results import row_of
from pytest_otval.report.select import FIELDS, Selection, select
from selftests.report.ledgers import IMAGE, line

ROWS = [
    row_of(one.as_dict())
    for one in (
        line("answer-file", score=1.0, seconds={"total": 2.5}, image=IMAGE),
        line("answer-tmp", reason="wrong-reward", score=0.25, headline="oracle scored 0.25", seconds={"total": 70}),
        line("port-a", "build", reason="killed", headline="gone"),
        line("port-b", reason="flaky", attempts={"passed": 2, "count": 3, "low": 0.2, "high": 0.9}),
        line("known", reason="no-reward", known_bad="a mirror is missing"),
    )
]


def chosen(expression):
    return [row.task for row, want in zip(ROWS, select(expression, ROWS), strict=True) if want]


@pytest.mark.parametrize(
    ("expression", "tasks"),
    [
        ('verdict == "fail"', ["answer-tmp", "port-b", "known"]),
        ("verdict != 'fail' and stage == 'oracle'", ["answer-file"]),
        ("class == 'flaky' or reason == \"killed\"", ["port-a", "port-b"]),
        ("not unexpected", ["answer-file", "known"]),
        ("known_bad", ["known"]),
        ("unexpected == True and dataset == 'demo'", ["answer-tmp", "port-a", "port-b"]),
        ("task ~ 'answer-*'", ["answer-file", "answer-tmp"]),
        ("not task ~ '*-[ab]' and not known_bad", ["answer-file", "answer-tmp"]),
        ("'scored' in headline", ["answer-tmp"]),
        ("'scored' not in headline and verdict in ('fail',)", ["port-b", "known"]),
        ("stage in ['build', 'noop']", ["port-a"]),
        ("verdict not in {'pass', 'fail'}", ["port-a"]),
        ("score < 1", ["answer-tmp"]),
        ("0 <= score <= 1", ["answer-file", "answer-tmp"]),
        ("score == None", ["port-a", "port-b", "known"]),
        ("score != None and score > -1", ["answer-file", "answer-tmp"]),
        ("seconds >= 60", ["answer-tmp"]),
        ("seconds in (1, 2.5)", ["answer-file", "port-a", "port-b", "known"]),
        ("attempts.passed < attempts.count", ["port-b"]),
        ("attempts.low < .5", ["port-b"]),
        ("image.key ~ 'k*'", ["answer-file"]),
        ("image ~ 'debian:*'", ["answer-file"]),
        ("(verdict == 'error' or verdict == 'pass') and (seconds < 2)", ["port-a"]),
        ("headline ~ '*class*' or 'a ~ b' == 'x'", []),
        ("  verdict=='error'  ", ["port-a"]),
    ],
)
def test_what_it_can_say(expression, tasks):
    assert chosen(expression) == tasks


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_can_be_asked_of_every_row(field):
    for row in ROWS:
        assert Selection(field)(row) in (True, False)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("clas == 'x'", "at letter 1: there is no field 'clas': do you mean class?"),
        ("class == 'flaky' and tsak ~ 'a'", "at letter 22: there is no field 'tsak': do you mean task?"),
        ("verdict == fail", "at letter 12: fail is a value: put it in quotes"),
        ("flaky", "at letter 1: flaky is a value: put it in quotes"),
        ("qqq", "known are id, dataset"),
        ("score == 'high'", "compares a number with a text"),
        ("verdict < 1", "compares a text with a number"),
        ("unexpected == 1", "compares a truth with a number"),
        ("verdict in ('fail', 1)", "compares a text with a number"),
        ("1 in headline", "in needs a list, or text on both sides"),
        ("score < None", "None can only be compared by == and !="),
        ("verdict is None", "knows no `is`"),
        ("task ~ dataset", "~ needs a pattern in quotes"),
        ("task @ 'x'", "@ is not known"),
        ("klass == 'x'", "klass is not known"),
        ("attempts.__class__", "there is no field 'attempts.__class__'"),
        ("a.b.c", "has a dot that is not in a field's name"),
        ("'x'.task", "has a dot that is not in a field's name"),
        ("", "cannot be read"),
        ("verdict ==", "cannot be read"),
        ("verdict = 'fail'", "cannot be read"),
        ("a\nb", "more than one line"),
        ("~task", "cannot be read"),
        ("'" + "x" * 1000 + "'", "longer than 1000 letters"),
        ("not " * 60 + "verdict", "is too large"),
        ("<".join("1" * 201), "is too large"),
        ("(" * 300 + "1" + ")" * 300, "cannot be read"),
    ],
)
def test_what_is_refused_is_said_in_one_line(expression, says):
    with pytest.raises(OtvalUsageError) as refused:
        Selection(expression)
    message = str(refused.value)
    assert says in message
    assert "\n" not in message and message.isprintable()


FOREIGN = [
    "task()", "len(task)", "task.upper", "task.upper()", "verdict.__class__", "task[0]", "task[1:]", "{'a': 1}",
    "lambda: 1", "[x for x in task]", "{x for x in task}", "(x for x in task)", "{x: 1 for x in task}", "f'{task}'",
    "f'x'", "1 if task else 2", "(x := 1)", "await task", "(yield)", "*task", "1 + 1", "score - 1", "score * 2",
    "2 ** 9", "'a' * 9", "'%s' % task", "1 << 9", "1 | 2", "1 & 2", "1 ^ 2", "1 // 2", "1 / 2", "+1", "-task", "b'x'",
    "1j", "...", "()", "[]", "verdict in verdict()", "verdict in [task]", "__import__('os')", "[1]", "('a', 'b')",
    "task == ('a',)", "print", "__builtins__", "self", "row", "True.real", "(1).real", "task ~ 'a' ~ 'b'",
    "task ~ ('a')()", "'a' ~ 1", "(task, 1)", "task if 1", "not", "`task`", "$", "task;task", "task # x\\", "-True",
    "- - 1",
]  # fmt: skip
"""Expressions of Python that the language does not have."""

HOLES = st.sampled_from(["{}", "not ({})", "({}) and task", "task or ({})", "({}) == 'a'", "'a' == ({})", "(({}))"])


@given(st.sampled_from(FOREIGN), st.lists(HOLES, max_size=4))
def test_what_is_foreign_is_refused_wherever_it_stands(foreign, holes):
    for hole in holes:
        foreign = hole.replace("{}", foreign)
    with pytest.raises(OtvalUsageError):
        Selection(foreign)


WORDS = st.sampled_from(
    [*FIELDS, "and", "or", "not", "in", "is", "==", "!=", "<", ">=", "~", "(", ")", "[", "]", "{", "}", ",", "'a'",
     "'*'", "1", "2.5", "-", "None", "True", "@", ":", ".", "=", "lambda", "if", "else", "for", "f'{task}'", "*", "**",
     "__import__", "klass", "\\", "\n", "\t", "#", "'", '"', "\x00", "\ud800", "é", "0x", "1e999", "j"]
)  # fmt: skip


@given(st.one_of(st.lists(WORDS, max_size=12).map(" ".join), st.lists(WORDS, max_size=12).map("".join), st.text()))
def test_nothing_but_an_answer_or_a_refusal_comes_of_any_text(text):
    try:
        selection = Selection(text)
    except OtvalUsageError as refused:
        assert str(refused).isprintable()
    else:
        for row in ROWS:
            assert selection(row) in (True, False)


def test_a_pattern_cannot_be_made_to_run_for_long():
    row = row_of(line(headline="a" * 200).as_dict())
    assert not Selection("headline ~ '" + "*a" * 100 + "*b'")(row)
