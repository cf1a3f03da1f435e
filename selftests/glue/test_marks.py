"""Stages are left out before collection only where pytest would deselect each of their items."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_otval.glue.marks import MOST_OTHERS, chosen_stages
from pytest_otval.stages.spec import Stage
from selftests.glue.conftest import ids

pytest_plugins = ["pytester"]

NAMES = ("static", "build", "oracle", "noop", "extra")
STAGES = tuple(Stage(name, "nowhere:answer", "?", by_default=name != "extra") for name in NAMES)
OTHERS = ("slow", "stat", "statics", "True", "oracle-x", "a.b", "xfail", "naïve", "x1", "[y]", "z:w")


def pytest_keeps(markexpr: str, marks: set[str]) -> bool:
    """Ask pytest's own code about an item with these marks."""
    from _pytest.mark import MarkMatcher
    from _pytest.mark.expression import Expression

    own = [pytest.Mark(name, (), {"on": 1}, _ispytest=True) for name in marks]
    return Expression.compile(markexpr).evaluate(MarkMatcher.from_markers(own))


def expressions():
    words = st.sampled_from((*NAMES, *OTHERS))
    with_arguments = st.builds("{}({}={})".format, words, st.just("on"), st.sampled_from(["1", "2", "'x'", "True"]))
    return st.recursive(
        words | with_arguments,
        lambda inner: st.one_of(
            st.builds("not {}".format, inner),
            st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner),
            st.builds("{} {}  {}".format, inner, st.sampled_from(["and", "or"]), inner),
        ),
        max_leaves=8,
    )


@given(expressions(), st.sets(st.sampled_from(OTHERS)))
def test_no_stage_is_left_out_that_pytest_would_keep(markexpr, marks):
    chosen = chosen_stages(STAGES, markexpr)
    kept = {name for name in NAMES if pytest_keeps(markexpr, {name, *marks})}
    assert kept <= set(chosen)
    assert list(chosen) == [name for name in NAMES if name in chosen]


@given(expressions())
def test_what_is_left_in_could_be_kept(markexpr):
    """So as not to pass by letting everything through."""
    others = [word for word in OTHERS if word in markexpr]
    assume("=" not in markexpr and len(others) <= MOST_OTHERS)
    for name in chosen_stages(STAGES, markexpr):
        subsets = ({other for bit, other in enumerate(others) if number >> bit & 1} for number in range(16))
        assert any(pytest_keeps(markexpr, {name, *subset}) for subset in subsets)


@given(st.text(alphabet="ab ()=,'\"\n\tandotr", max_size=12))
def test_any_text_is_taken(text):
    """What is no expression is pytest's to refuse."""
    assert set(chosen_stages(STAGES, text)) <= set(NAMES)


@pytest.mark.parametrize(
    ("markexpr", "expected"),
    [
        ("", NAMES[:4]),
        ("static", ("static",)),
        ("oracle or noop", ("oracle", "noop")),
        ("not static", ("build", "oracle", "noop", "extra")),
        ("oracle and slow", ("oracle",)),
        ("oracle and noop", ()),
        ("slow", NAMES),
        ("oracle and slow(reason='x')", NAMES),
        ("a or b or c or d or e", NAMES),
        ("oracle and (", NAMES),
        ("( " * 10_000 + "oracle", NAMES),
    ],
    ids=lambda part: part[:20] if isinstance(part, str) else "",
)
def test_stages_of_an_expression(markexpr, expected):
    assert chosen_stages(STAGES, markexpr) == expected


def test_where_pytest_has_no_such_parser_all_stages_are_left_in(monkeypatch):
    monkeypatch.setattr("_pytest.mark.expression.Expression", None)
    assert chosen_stages(STAGES, "static") == NAMES


def test_nodes_are_made_for_the_stages_that_are_left(project):
    """pytest's own deselection would have to speak of the others."""
    project.dataset()
    outcome = project.run("--co", "-q", "-m", "oracle", "datasets/demo")
    assert outcome.ids == ids("a", "b", stages=("oracle",))
    assert not any("deselected" in line for line in outcome.lines)


def test_a_mark_that_a_conftest_gives_is_heard(project):
    project.pytester.makeconftest(
        "def pytest_itemcollected(item):\n"
        "    if '/b/' in item.nodeid and item.name in ('static', 'build', 'oracle'): item.add_marker('slow')\n"
        "def pytest_configure(config): config.addinivalue_line('markers', 'slow: of this project')\n"
    )
    project.dataset()
    assert project.collect("-m", "slow", "datasets/demo") == ids("b", stages=("static", "build", "oracle"))
    own = "datasets/demo/dataset.toml::static"
    assert project.collect("-m", "static and not slow", "datasets/demo") == [own, *ids("a", stages=("static",))]


@pytest.mark.parametrize("markexpr", ["oracle and (", "oracle oracle", "a(b", "'"])
def test_what_is_no_expression_is_refused_by_pytest(project, markexpr):
    project.dataset()
    assert "Wrong expression passed to '-m'" in project.run("-m", markexpr, "datasets/demo").refusal
