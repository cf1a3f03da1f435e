"""Makes the tasks of this dataset: ``python datasets/swe-lego/patch.py fetch``, then ``prepare``."""

import sys

from pytest_otval.sources.dataset import PatchedDataset
from pytest_otval.sources.library import resources

if __name__ == "__main__":
    sys.exit(PatchedDataset(__file__, [resources(2, 8192, 20480)]).main())
