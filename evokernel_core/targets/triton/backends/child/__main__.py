"""Loads this folder as the package ``evokernel_triton_child`` and does what the first argument says.

The folder must not stay on ``sys.path``: ``import driver`` of some library would find our module.
"""

import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAME = "evokernel_triton_child"


def _load_package() -> None:
    spec = importlib.util.spec_from_file_location(
        NAME, HERE / "__init__.py", submodule_search_locations=[str(HERE)]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
    _load_package()
    importlib.import_module(f"{NAME}.{sys.argv[1]}").main(sys.argv[2:])
