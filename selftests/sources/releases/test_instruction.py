from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.sources.releases.instruction import describe_tests, list_cases, list_tests, split_node_id

SOURCE = b'''
import pytest
import thing
import thing.sub as sub
from thing import Box, Wrong as W
from elsewhere import other

class TestBox:
    def test_open(self):
        """Opening works,
        even twice.

        Details that are not shown.
        """
        with pytest.raises((W, KeyError)):
            Box(1, sub.helper(2)).open(other())

def test_plain():
    assert thing.make().name == "secret expectation"
'''


def facts(*ids):
    return list(describe_tests(ids, {"t.py": SOURCE}, "thing"))


def test_a_method_is_described_by_document_names_and_exceptions():
    (fact,) = facts("t.py::TestBox::test_open")
    assert fact.function == "TestBox.test_open"
    assert fact.purpose == "Opening works, even twice."
    assert fact.names == ("thing.Box().open", "thing.Wrong", "thing.sub.helper")
    assert fact.raises == ("KeyError", "W")


def test_parametrised_ids_are_one_function():
    assert [fact.function for fact in facts("t.py::test_plain[1]", "t.py::test_plain[a::b]")] == ["test_plain"]


def test_a_test_made_at_run_time_has_its_name_only():
    (fact,) = facts("t.py::TestMade::test_case_1")
    assert (fact.purpose, fact.names, fact.raises) == ("", (), ())


def test_the_text_shows_no_assertion():
    text = list_tests(facts("t.py::TestBox::test_open", "t.py::test_plain"))
    assert "`test_plain` in `t.py`" in text
    assert "`thing.make().name`" in text
    assert "secret expectation" not in text


def test_another_package_of_a_longer_name_is_not_ours():
    source = b"import things\ndef test_x():\n    things.go()\n"
    (fact,) = describe_tests(["t.py::test_x"], {"t.py": source}, "thing")
    assert fact.names == ()


def test_cases_are_listed_up_to_a_number():
    ids = [f"t.py::test_x[{number}]" for number in range(100)]
    text = list_cases(["t.py::test_plain", *ids])
    assert "test_plain" not in text
    assert text.count("\n") == 40
    assert text.endswith("- and 60 more of the same functions")


def test_node_ids_are_split_before_their_parameters():
    assert split_node_id("a/t.py::A::test_x[b::c[d]]") == ("a/t.py", "A.test_x")


@given(st.binary())
def test_no_source_is_fatal(source):
    assert len(list(describe_tests(["t.py::test_x"], {"t.py": source}, "thing"))) == 1
