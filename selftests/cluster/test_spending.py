"""What a job tells others of what it spent, and hears of them."""

from pytest_otval.cluster.request import Models
from pytest_otval.cluster.spending import READ_SECONDS_A_FILE, Spending, budget_of, over_budget
from pytest_otval.llm.budget import FOLDER, Budget, Spent
from pytest_otval.llm.chat import Usage


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_jobs_hear_of_each_other_and_look_the_less_often_the_more_they_are(tmp_path):
    clock, run, models = Clock(), tmp_path / "run", Models(budget_tokens=100)
    jobs = [Spending(tmp_path / name, run, models, clock) for name in "abc"]
    for name, job in zip("abc", jobs, strict=True):
        Budget(tmp_path / name).spend("m", Usage(30))
        job.carry()
    assert not jobs[0].over() and Budget(tmp_path / "a").spent() == Spent(1, 30, 0)
    clock.now = 3 * READ_SECONDS_A_FILE + 0.01
    for job in jobs:
        job.carry()
    assert {Budget(tmp_path / name).spent().tokens for name in "abc"} == {90}
    Budget(tmp_path / "a").spend("m", Usage(10))
    jobs[0].carry()
    assert jobs[1].over() == "the budget of 100 tokens is spent: 100 were used"


def test_without_a_budget_jobs_tell_and_do_not_look(tmp_path):
    clock, run = Clock(), tmp_path / "run"
    here = Spending(tmp_path / "a", run, Models(), clock)
    Budget(tmp_path / "a").spend("m", Usage(30))
    Budget(run).spend("m", Usage(7))
    clock.now = 1000.0
    here.carry()
    assert Budget(run).spent().tokens == 37 and Budget(tmp_path / "a").spent().tokens == 30
    assert not over_budget(budget_of(run, Models()))


def test_storage_that_takes_nothing_ends_no_job(tmp_path):
    (tmp_path / "run").write_text("no folder")
    here = Spending(tmp_path / "a", tmp_path / "run", Models(budget_usd=1.0))
    Budget(tmp_path / "a").spend("m", Usage(30))
    here.carry()
    assert not here.over() and (tmp_path / "a" / FOLDER).is_dir()
