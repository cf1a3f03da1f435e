"""A process that builds one image over the tiny base: ``python -m selftests.images.build_once STORE SCRATCH FOLDER``.

Prints the image's key and how often it packed something, or the class and the headline of why there is none.
"""

import sys
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.images import making
from pytest_otval.images.bases import own_sources
from pytest_otval.images.locks import sweep_half
from pytest_otval.images.model import ImageRequest
from pytest_otval.images.store import Images
from pytest_otval.sandbox.leftovers import OwnScratch
from pytest_otval.sandbox.probe import apptainer_maker, choose_flavour
from pytest_otval.sandbox.toolbox import ensure_toolbox
from selftests.images.tiny import SilentRegistry, tiny_base, tiny_profile


def main(store, scratch_root, folder):
    packed = []
    build = making.Maker.build
    making.bootstrap = lambda recipe, target, all_root: tiny_base(target, all_root)
    making.Maker.build = lambda *words: (packed.append(True), build(*words))[1]
    profile = tiny_profile()
    toolbox = ensure_toolbox(scratch_root)
    scratch = OwnScratch(scratch_root)
    maker = apptainer_maker(toolbox, scratch, "none")
    flavour = choose_flavour(profile.sandbox.flavours, maker, toolbox, scratch)
    swept = sweep_half(store)
    try:
        sources = own_sources(store, profile, registry=SilentRegistry())
        run = scratch_root / "run"
        images = Images(store, maker(flavour), profile, scratch.folder, run, sources=sources)
        images._maker._builder._network = "none"
        print(images.ensure(ImageRequest(folder, None, 120.0)).key, len(packed), swept)
    except Conclusion as conclusion:
        print(conclusion.reason, conclusion.headline)
    finally:
        scratch.close()


if __name__ == "__main__":
    main(*(Path(word) for word in sys.argv[1:4]))
