"""What became of items between two runs, and how it is told."""

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.sources.effect import effects, markdown, page, table, write_readme
from selftests.report.ledgers import line, make_run

CASES = [
    ("fixed", "wrong-reward", "expected"),
    ("regressed", "expected", "no-reward"),
    ("still broken", "wrong-reward", "no-reward"),
    ("unchanged", "expected", "expected"),
    ("unchanged", "no-solution", "no-solution"),
    ("no answer", "expected", "no-start"),
    ("no answer", "no-start", "expected"),
    ("fixed", "image-failed", "expected"),
    ("regressed", "expected", "no-solution"),
]


@pytest.fixture
def runs(tmp_path):
    before = make_run(tmp_path / "before", *(line(f"t{n}", "oracle", case[1]) for n, case in enumerate(CASES)))
    after = make_run(tmp_path / "after", *(line(f"t{n}", "oracle", case[2]) for n, case in enumerate(CASES)))
    return before, after


def test_what_became_of_each_item(runs):
    assert [one.became for one in effects(*runs)] == [case[0] for case in CASES]
    assert (effects(*runs)[1].before, effects(*runs)[1].after) == ("pass", "fail no-reward")


def test_the_table_counts_by_patch_and_stage(runs):
    patches = {f"t{number}": ("first",) if number < 4 else ("first", "second") for number in range(len(CASES))}
    rows = table(effects(*runs), patches)
    assert rows[0] == ("patch", "stage", "fixed", "regressed", "still broken", "unchanged", "no answer")
    assert rows[1:] == [("first", "oracle", "2", "2", "1", "2", "2"), ("second", "oracle", "1", "1", "0", "1", "2")]
    assert list(markdown(rows))[:2] == [
        "| patch | stage | fixed | regressed | still broken | unchanged | no answer |",
        "|---|---|---|---|---|---|---|",
    ]


def test_a_page_is_text(runs, tmp_path):
    hostile = make_run(tmp_path / "hostile", line("<script>x</script>", "oracle", "expected"))
    bad = make_run(tmp_path / "bad", line("<script>x</script>", "oracle", "wrong-reward"))
    found = effects(hostile, bad)
    text = page("<b>", table(found, {found[0].task: ("p",)}), found)
    assert "<script>" not in text and "<b>" not in text
    assert "&lt;script&gt;" in text


def test_the_readme_has_a_place_for_it(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("# Mine\n<!-- effect -->\nold\n<!-- /effect -->\nend\n")
    for _ in range(2):
        write_readme(readme, ["| a |"])
        assert readme.read_text() == "# Mine\n<!-- effect -->\n| a |\n<!-- /effect -->\nend\n"
    readme.write_text("# Mine\n")
    with pytest.raises(OtvalUsageError, match="has no place"):
        write_readme(readme, [])
