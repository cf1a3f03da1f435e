from pathlib import Path

numbers = []


def test_there_are_two_numbers():
    numbers.extend(map(int, Path("/app/numbers.txt").read_text().split()))
    assert len(numbers) == 2


def test_numbers_are_right():
    assert numbers == [13, 42]
