import datetime
from pathlib import Path


def test_date():
    answer = datetime.date.fromisoformat(Path("/app/leap-day.txt").read_text().strip())
    assert answer == datetime.date(2028, 2, 29)


def test_license_is_valid():
    assert datetime.date(2000, 1, 1) < datetime.date.today() < datetime.date(2100, 1, 1)
