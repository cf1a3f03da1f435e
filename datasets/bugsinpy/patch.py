"""Makes the tasks of this dataset: ``python datasets/bugsinpy/patch.py fetch``, then ``prepare``."""

import sys

from pytest_otval.sources.dataset import PatchedDataset

if __name__ == "__main__":
    sys.exit(PatchedDataset(__file__).main())
