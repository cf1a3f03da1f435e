"""Makes the tasks of this dataset: ``python datasets/pypi-releases/patch.py fetch``, then ``prepare``."""

import sys

from pytest_otval.sources.releases.dataset import ReleaseDataset

if __name__ == "__main__":
    sys.exit(ReleaseDataset(__file__).main())
