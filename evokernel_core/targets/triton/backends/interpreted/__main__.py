"""Load this folder as the package ``evokernel_interpreted`` and serve."""

import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def _load_package() -> None:
    spec = importlib.util.spec_from_file_location(
        "evokernel_interpreted", HERE / "__init__.py", submodule_search_locations=[str(HERE)]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["evokernel_interpreted"] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
    _load_package()
    importlib.import_module("evokernel_interpreted.service").main()
