"""Whether the interpreter's torch is one that the agent works with; asked before anything else imports it."""

from __future__ import annotations

import re
import sys

from .errors import AgentError, describe
from .importing import importing

OLDEST = (2, 5)


def require_torch() -> str:
    """The version of torch. Raises AgentError, with one sentence, where it is too old, broken or missing."""
    try:
        with importing("torch"):
            import torch
    except Exception as error:  # a broken installation raises what it likes
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            raise _refused("has no torch: install torch in it or set another interpreter") from error
        raise _refused(f"cannot import torch ({describe(error)}): install torch in it again") from error
    version = str(getattr(torch, "__version__", ""))
    if _numbers(version) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        found = f"has torch {version or 'of no version'}, and EvoKernel works with {oldest} and newer"
        raise _refused(f"{found}: install a newer torch or set another interpreter")
    return version


def _refused(what: str) -> AgentError:
    return AgentError("no_interpreter", f"The interpreter {sys.executable} {what}.")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))
