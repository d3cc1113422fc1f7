"""Load this folder as the package ``evokernel_agent`` and serve.

The folder must not stay on ``sys.path``: a user's ``import record`` would find our module.
"""

import importlib.util
import site
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def _load_package() -> None:
    spec = importlib.util.spec_from_file_location(
        "evokernel_agent", HERE / "__init__.py", submodule_search_locations=[str(HERE)]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["evokernel_agent"] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
    if site.ENABLE_USER_SITE is False:
        # -I hides the user's site folder, which is where `pip install --user torch` puts torch
        site.addsitedir(site.getusersitepackages())
    _load_package()
    importlib.import_module("evokernel_agent.watcher").watch_as_told(sys.argv)
    importlib.import_module("evokernel_agent.service").main()
