"""Runs before an observed program: begins to observe, then hands over to the ``sitecustomize`` that this one
hides. This folder is on ``PYTHONPATH`` only for ``evokernel observe``, and leaves ``sys.path`` at once."""

import contextlib
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
_AGENT = os.path.dirname(os.path.dirname(_HERE))  # noqa: PTH120


def _observe():
    spec = importlib.util.spec_from_file_location(
        "evokernel_agent",
        os.path.join(_AGENT, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[_AGENT],
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules["evokernel_agent"] = package
    spec.loader.exec_module(package)
    importlib.import_module("evokernel_agent.observation.start").start()


def _hand_over():
    """Executes the environment's own ``sitecustomize``, as if this one had not been there."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]  # noqa: PTH100
    own = sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = own  # an import expects to find what it has begun to import


with contextlib.suppress(Exception):
    _observe()
_hand_over()
