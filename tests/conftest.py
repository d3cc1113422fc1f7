"""What every test shares: a twin that is built once, though each test has a home of its own."""

from __future__ import annotations

import os

import platformdirs

os.environ.setdefault("EVOKERNEL_TWIN_DIR", f"{platformdirs.user_cache_dir('evokernel')}/twin")
# NumPy's threads wait for each other in loops: on few cores they take more time than they save.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
