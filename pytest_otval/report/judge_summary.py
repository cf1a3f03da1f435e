"""What reviews add up to, as lines of text for the summary of a run: criterion by outcome, agreement, cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from pytest_otval.judge.agreement import fleiss_kappa
from pytest_otval.judge.model import NOT_MEASURED
from pytest_otval.report.attempt_summary import counted
from pytest_otval.report.results import Row
from pytest_otval.report.reviews import Judged, Reviewed
from pytest_otval.report.text import Text, one_line

COLUMNS = (
    *("pass", "n/a", "uncertain", "unquoted", "split", "fail"),
    *("refuted", "disproved", "advisory", "stands", "executed"),
)
"""``unquoted`` and ``split`` are among ``uncertain``; what stands behind ``fail`` is what became of fails."""
WHAT = {"instruction": "tasks", "trace": "attempts"}

_QUIET = frozenset(("pass", "n/a"))
_NAME_LETTERS = 40
_NAMES_LETTERS = 200


def by_judge(rows: Iterable[Row]) -> dict[tuple[str, str], list[Reviewed]]:
    """Return the reviews of rows by kind and model."""
    found: dict[tuple[str, str], list[Reviewed]] = defaultdict(list)
    for review in (review for row in rows for review in row.reviews):
        found[review.kind, review.model].append(review)
    return dict(sorted(found.items()))


def counts_of(reviews: Iterable[Reviewed]) -> dict[str, Counter[str]]:
    """Return how often each criterion has what is told in COLUMNS, in the order of the rubric."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for judged in (judged for review in reviews for judged in review.judged):
        found[judged.criterion].update(_columns(judged))
    return found


def _columns(judged: Judged) -> Iterator[str]:
    yield "n/a" if judged.outcome == "not_applicable" else judged.outcome
    if judged.standing:
        yield judged.standing
    if judged.dropped:
        yield "unquoted"


def kappa_of(reviews: Iterable[Reviewed]) -> float | None:
    """Return Fleiss' kappa of the first two votes about every criterion of all reviews; None where it is undefined."""
    return fleiss_kappa([one.votes for review in reviews for one in review.judged if len(one.votes) == 2])


def cost_of(reviews: Sequence[Reviewed]) -> str:
    """Return in words what reviews took."""
    cached, tokens = sum(one.cached for one in reviews), sum(one.tokens for one in reviews)
    prices = [one.usd for one in reviews if one.usd is not None]
    priced = f", {sum(prices):.4f} USD" if prices else ""
    return f"{counted(sum(one.answers for one in reviews), 'answer')}, {cached} from the cache, {tokens} tokens{priced}"


def judge_lines(rows: Iterable[Row]) -> Iterator[Text]:
    """Yield the lines; none where nothing was reviewed."""
    for (kind, model), reviews in by_judge(rows).items():
        kappa = kappa_of(reviews)
        agreed = "" if kappa is None else f", kappa {kappa:.2f}"
        what = f"reviews of {WHAT.get(kind, one_line(kind))} by {one_line(model, _NAME_LETTERS)}"
        yield Text(f"{what}: {len(reviews)}{agreed}; {cost_of(reviews)}", "title")
        yield from _table(counts_of(reviews))
        yield from _unmeasured(reviews)
        classes = Counter(review.classification for review in reviews if review.classification)
        if classes:
            told = ", ".join(f"{one_line(name, _NAME_LETTERS)} {count}" for name, count in classes.most_common())
            yield Text(f"        with their rewards they are: {told}")


def _unmeasured(reviews: Iterable[Reviewed]) -> Iterator[Text]:
    judged = (one for review in reviews for one in review.judged)
    names = dict.fromkeys(one.criterion for one in judged if one.measured == NOT_MEASURED)
    if names:
        told = one_line(", ".join(names), _NAMES_LETTERS)
        yield Text(f"  fails of criteria that were {NOT_MEASURED} (judge calibrate): {told}", "warn")


def _table(counts: dict[str, Counter[str]]) -> Iterator[Text]:
    loud = {name: one for name, one in counts.items() if set(one) - _QUIET}
    if loud:
        width = max(9, *(len(one_line(name, _NAME_LETTERS)) for name in loud))
        columns = [name for name in COLUMNS if any(one[name] for one in loud.values())]
        yield Text(f"  {'criterion':{width}}" + "".join(f"  {name}" for name in columns), "title")
        for name, one in loud.items():
            cells = "".join(f"  {one[column]:>{len(column)}}" for column in columns)
            bad = one["stands"] or one["executed"]
            yield Text(f"  {one_line(name, _NAME_LETTERS):{width}}{cells}", "warn" if bad else "")
    if quiet := len(counts) - len(loud):
        whose = f"{quiet} more criteria" if loud else f"all {quiet} criteria"
        yield Text(f"  {whose}: pass or not applicable")
