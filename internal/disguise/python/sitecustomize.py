# Python runs this file at its start, being first on the path of the session's
# programs. It starts nothing and imports nothing that is not there already: it
# waits until a program imports a framework. A sitecustomize further on the path
# runs as it would without this one.
import os
import sys
import _frozen_importlib
import _frozen_importlib_external

HERE = os.path.dirname(__file__)
PARTS = {"torch": "cosplay_torch", "cupy": "cosplay_others", "jax": "cosplay_others", "tensorflow": "cosplay_others"}


def load(name, path):
    """Run the first module of a name in some folders; None where there is none."""
    # These two are importlib itself, in memory from the start: no file is read.
    spec = _frozen_importlib_external.PathFinder.find_spec(name, path)
    if spec is None or spec.loader is None:
        return None
    module = _frozen_importlib.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def look_after(loader):
    """Have a loader prepare a framework once it is imported."""
    run = loader.exec_module

    def exec_module(module):
        run(module)
        part = PARTS.get(module.__name__)
        if part:
            (sys.modules.get(part) or load(part, [HERE])).prepare(module)

    loader.exec_module = exec_module


class Finder:
    """Finds frameworks as the others do."""

    cosplay_part = HERE  # shows a program that starts later that this file ran

    def find_spec(self, name, path=None, target=None):
        if name not in PARTS:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    look_after(spec.loader)
                return spec
        return None


sys.meta_path.insert(0, Finder())

# Who is in front of us on the path has had his turn, so only who is behind.
if HERE in sys.path:
    load("sitecustomize", sys.path[sys.path.index(HERE) + 1:])
