"""What a person sees besides pytest's own output, registered where its plugins are there."""

from __future__ import annotations

import pytest

QUIETEST = -2
"""Verbosity (-qq) at which pytest itself shows no progress."""


def register_reports(config: pytest.Config) -> None:
    """Register progress, html and junit on the controller, as far as this run has them."""
    plugins = config.pluginmanager
    reporter = plugins.getplugin("terminalreporter")
    if reporter is not None and config.get_verbosity() > QUIETEST:
        from pytest_otval.glue.progress import Progress

        plugins.register(Progress(reporter), "otval-progress")
    if reporter is not None and config.getoption("--otval-fix"):
        from pytest_otval.glue.fixed import ShowFixes

        plugins.register(ShowFixes(reporter), "otval-fixed")
    if plugins.hasplugin("html") and config.getoption("htmlpath", None):
        from pytest_otval.glue.html import HtmlPage

        plugins.register(HtmlPage(config), "otval-html")
    if config.getoption("xmlpath", None):
        from pytest_otval.glue.junit import write_readable_properties

        write_readable_properties(config)
