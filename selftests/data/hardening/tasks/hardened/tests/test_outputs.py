import sys

sys.path.insert(0, "/app")


def test_answer():
    from mod import answer

    assert answer() == 42
