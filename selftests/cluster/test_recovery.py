"""Which items are submitted again, which run alone, which are given up."""

from pytest_otval.cluster.journal import Attempt
from pytest_otval.cluster.recovery import KILLS, TRIES, GivenUp, Past, Silent, recover
from pytest_otval.cluster.submission import Array, Element
from pytest_otval.core import node_id

IDS = [node_id("d", f"t{task}", "oracle") for task in range(6)]
PLAN = [[0, 1, 2], [3, 4, 5]]
BOTH = (Element(0), Element(1))


def arrays(*elements):
    return [Array(number, tuple(one), 0.0, str(10 + number)) for number, one in enumerate(elements)]


def attempt(array, element, started=(), restart=0, shard=0, **more):
    ids = {IDS[number] for number in started}
    return Attempt(shard, f"{10 + array}_{element}", restart, more.pop("node", "n1"), array, ids, **more)


def decide(past, missing):
    return recover(past, missing, IDS, PLAN)


def test_what_a_lost_job_left_is_submitted_again_as_its_shard():
    past = Past(arrays(BOTH), [attempt(0, 0, started=[0, 1], answers=1)], {(0, 1)})
    plan = decide(past, [1, 2])
    assert plan.elements == (Element(0, (1, 2)),)
    assert plan.given_up == () and plan.exclude == ()


def test_a_job_that_slurm_ended_blames_nobody():
    lives = [attempt(0, 0, [0], restart=n, ended=True, fault="slurm", answers=1) for n in range(5)]
    plan = decide(Past(arrays(BOTH), lives, set()), [0, 1])
    assert plan.elements == (Element(0, (0, 1)),)


def test_an_item_that_ran_when_jobs_were_killed_runs_alone():
    lives = [attempt(0, 0, [0, 1]), attempt(1, 0, [1, 2], answers=1)]
    past = Past(arrays(BOTH, [Element(0, (0, 1, 2))]), lives, {(0, 1)})
    plan = decide(past, [1, 2])
    assert plan.elements == (Element(0, (1,), alone=True), Element(0, (2,)))


def test_the_lives_of_one_job_count():
    lives = [attempt(0, 0, [0]), attempt(0, 0, [0], restart=1)]
    assert decide(Past(arrays(BOTH), lives, {(0, 1)}), [0]).elements == (Element(0, (0,), alone=True),)
    # The second life may still end well.
    assert decide(Past(arrays(BOTH), lives, {(0, 0), (0, 1)}), [0]).elements == (Element(0, (0,)),)


def test_an_item_that_kills_its_job_alone_is_given_up():
    lives = [attempt(n, 0, [0], ended=True, fault="item") for n in range(KILLS)] + [attempt(KILLS, 0, [0])]
    past = Past(arrays(BOTH, [Element(0)], [Element(0, (0,), alone=True)]), lives, {(0, 1)})
    plan = decide(past, [0, 1])
    (given_up,) = plan.given_up
    assert (given_up.item, given_up.reason) == (0, "crashed")
    assert "3 jobs" in given_up.headline
    assert plan.elements == (Element(0, (1,)),)


def test_an_item_that_survives_alone_is_done_and_nothing_is_given_up():
    lives = [attempt(0, 0, [0]), attempt(1, 0, [0]), attempt(2, 0, [0], ended=True, answers=1)]
    past = Past(arrays(BOTH, [Element(0)], [Element(0, (0,), alone=True)]), lives, set())
    assert decide(past, []).given_up == ()


def test_jobs_that_answer_nothing_are_not_submitted_for_ever():
    lives = [attempt(n, 0, ended=True, fault="node", why="disk full", node=f"n{n}") for n in range(TRIES)]
    past = Past(arrays(BOTH, [Element(0)], [Element(0)]), lives, {(0, 1)})
    plan = decide(past, [0, 1, 2])
    assert plan.elements == ()
    assert {(one.item, one.reason) for one in plan.given_up} == {(0, "killed"), (1, "killed"), (2, "killed")}
    assert "disk full" in plan.given_up[0].headline


def test_where_no_server_of_a_model_lasts_its_attempts_end_as_errors():
    lives = [attempt(n, 0, [0], ended=True, fault="server", why="it hangs") for n in range(TRIES)]
    past = Past(arrays(*[[Element(0)]] * TRIES), lives, set())
    plan = decide(past, [0, 1])
    headline = "3 jobs one after the other answered nothing: it hangs"
    assert plan.given_up == tuple(GivenUp(item, "endpoint-failed", headline) for item in (0, 1))
    assert plan.elements == () and plan.exclude == (), "the same shard's tell nothing of the node"
    lives = [attempt(0, n, [n], shard=n, ended=True, fault="server") for n in range(3)]
    assert recover(Past(arrays(map(Element, range(3))), lives, set()), [0], IDS, [[0], [1], [2]]).exclude == ("n1",)


def test_a_job_that_got_further_gives_the_next_ones_new_tries():
    lives = [attempt(n, 0, ended=True, fault="slurm", answers=n == 1) for n in range(4)]
    past = Past(arrays(BOTH, *[[Element(0)]] * 3), lives, {(0, 1)})
    assert decide(past, [0]).given_up == ()


def test_jobs_that_never_began_say_why():
    past = Past(
        arrays(BOTH, [Element(0)], [Element(0)]), [], {(0, 1)}, {(2, 0): Silent("otval: n1: there is no Python", "n1")}
    )
    (given_up, *_) = decide(past, [0, 1, 2]).given_up
    assert given_up.headline.endswith("otval: n1: there is no Python")


def test_a_node_on_which_jobs_of_three_shards_fail_is_left_out():
    plan = [[0, 1], [2, 3], [4], [5]]
    lives = [attempt(0, n, shard=n, ended=True, fault="node", node="bad") for n in range(3)]
    lives.append(attempt(0, 3, shard=3, node="good"))
    past = Past(arrays([Element(n) for n in range(4)]), lives, set())
    assert recover(past, range(6), IDS, plan).exclude == ("bad",)
    assert recover(Past(past.arrays, lives[1:], set()), range(6), IDS, plan).exclude == ()


def test_a_node_that_fails_a_shard_twice_is_left_out():
    once = Past(arrays(BOTH, [Element(0)]), [], {(0, 1)}, {(0, 0): Silent("disk full", "bad")})
    assert decide(once, [0]).exclude == ()
    again = [attempt(1, 0, ended=True, fault="node", node="bad")]
    assert decide(Past(once.arrays, again, {(0, 1)}, once.silent), [0]).exclude == ("bad",)
    # Killed jobs may be an item's fault.
    assert decide(Past(once.arrays, [attempt(0, 0), attempt(1, 0)], {(0, 1)}), [0]).exclude == ()


def test_where_slurm_forgot_the_node_none_is_left_out():
    past = Past(arrays(BOTH, [Element(0)]), [], set(), {(0, 0): Silent("x"), (1, 0): Silent("x")})
    assert decide(past, [0]).exclude == ()
