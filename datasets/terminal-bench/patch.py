"""Makes the tasks of this dataset: ``python datasets/terminal-bench/patch.py fetch``, then ``prepare``."""

import sys
import unicodedata

from pytest_otval.sources.dataset import PatchedDataset
from pytest_otval.sources.library import resources
from pytest_otval.sources.library.needs import found
from pytest_otval.sources.patches import Patch

INSTRUCTION = "instruction.md"


def shown(task):
    """Take out characters that nobody sees."""
    text = task.text(INSTRUCTION)
    task.write(INSTRUCTION, "".join(sign for sign in text if unicodedata.category(sign) != "Cf"))


PATCHES = [
    Patch("hidden-text", "instruction-hidden-text", shown, found("instruction-hidden-text")),
    resources(1, 4096, 10240),
]

if __name__ == "__main__":
    sys.exit(PatchedDataset(__file__, PATCHES).main())
