from dataclasses import fields, replace
from types import SimpleNamespace

from pytest_otval.core import Severity
from pytest_otval.glue.options import add_options
from pytest_otval.settings import RunSettings, VerdictSettings

OTHER = {
    "rules": "strict",
    "network": "none",
    "linters": True,
    "force_build": True,
    "timeout_multiplier": 2.0,
    "shuffle_tests": True,
    "clock_shift": "1d",
    "isolation": "none",
    "attacks": ("pth",),
    "severity": Severity.INFO,
    "agent": "tools",
    "max_steps": 7,
    "flavour": "userns",
}
NOT_OPTIONS = {"flavour", "writer"}
"""Settings that the machine decides."""


class Options:
    """Takes the place of pytest's parser and keeps the names of options."""

    def __init__(self):
        self.names = []

    def getgroup(self, *words):
        return SimpleNamespace(addoption=lambda name, **how: self.names.append(name))


def otval_options():
    parser = Options()
    add_options(parser)
    return [name.removeprefix("--otval-").replace("-", "_") for name in parser.names if name.startswith("--otval-")]


def names_of(settings):
    return {field.name for field in fields(settings)}


def test_every_option_is_a_verdict_setting_or_a_run_setting():
    options = otval_options()
    verdict, run = names_of(VerdictSettings), names_of(RunSettings)
    assert options
    assert not verdict & run
    for option in options:
        assert option in verdict | run, f"--otval-{option.replace('_', '-')} is in neither list of settings.py"
    assert (verdict | run) - set(options) == NOT_OPTIONS


def test_digest_is_the_same_in_every_version_of_the_program():
    """A change of this digest makes every older result unusable: it has to be meant."""
    assert VerdictSettings().digest() == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


def test_digest_covers_each_field():
    assert set(OTHER) == names_of(VerdictSettings)
    digests = {replace(VerdictSettings(), **{name: value}).digest() for name, value in OTHER.items()}
    assert len({*digests, VerdictSettings().digest()}) == len(OTHER) + 1
    assert replace(VerdictSettings()).digest() == VerdictSettings().digest()
