"""Makes the tasks of this dataset: ``python datasets/bugsinpy/patch.py fetch``, then ``prepare``."""

import sys

from pytest_otval.sources.dataset import PatchedDataset
from pytest_otval.sources.library import resources

if __name__ == "__main__":
    sys.exit(PatchedDataset(__file__, [resources(2, 4096, 10240)]).main())
