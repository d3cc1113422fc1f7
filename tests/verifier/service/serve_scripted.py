"""A real service process over the scripted verifier: FOLDER PORT [WORKERS] [FACTORY]."""

from __future__ import annotations

import sys
from pathlib import Path

from evokernel_core.verifier.service import ServiceConfig, serve

folder = Path(sys.argv[1])
factory = sys.argv[4] if len(sys.argv) > 4 else "fake_verifier:scripted"
serve(
    ServiceConfig(
        folder=folder,
        token="right-token",
        name="scripted 1",
        backend="scripted",
        workers=int(sys.argv[3]) if len(sys.argv) > 3 else 1,
        factory=factory,
        arguments={"journal": str(folder / "journal")} if factory.endswith(":scripted") else {},
        job_timeout_s=3.0,
        max_queued=20,
    ),
    host="127.0.0.1",
    port=int(sys.argv[2]),
)
