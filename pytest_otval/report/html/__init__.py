"""A run as web pages that open from a folder: an index of all results, and details that are loaded when asked for."""

from pytest_otval.report.html.write import write_html

__all__ = ["write_html"]
