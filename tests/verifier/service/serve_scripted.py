"""A real service process over the scripted verifier: FOLDER PORT WORKERS FACTORY OPTIONS LIMITS (JSON)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from evokernel_core.verifier.service import ServiceConfig, serve
from evokernel_core.verifier.serving.door import Limits

folder, factory = Path(sys.argv[1]), sys.argv[4]
options: dict[str, Any] = json.loads(sys.argv[5])
tls = options.pop("tls", ["", ""])
serve(
    ServiceConfig(
        folder=folder,
        token="right-token",
        name="scripted 1",
        backend="scripted",
        workers=int(sys.argv[3]),
        factory=factory,
        arguments={"journal": str(folder / "journal")} if factory.endswith(":scripted") else {},
        limits=Limits(**json.loads(sys.argv[6])),
        **{"job_timeout_s": 3.0, "max_queued": 20} | options,
    ),
    host="127.0.0.1",
    port=int(sys.argv[2]),
    certificate=tls[0],
    key=tls[1],
)
