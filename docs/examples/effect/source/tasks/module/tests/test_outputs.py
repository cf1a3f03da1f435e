import sys

sys.path.insert(0, "/app")


def test_mean():
    from mod import mean

    assert mean([1, 2, 6]) == 3.0


def test_mean_of_nothing():
    from mod import mean

    assert mean([]) == 0.0
