"""Whether the interpreter's torch is one that the agent works with; asked before anything else imports it."""

from __future__ import annotations

import re
import sys

from .errors import AgentError, describe
from .importing import importing
from .sentence import Sentence

OLDEST = (2, 5)


def require_torch() -> str:
    """The version of torch. Raises AgentError, with one sentence, where it is too old, broken or missing."""
    try:
        with importing("torch"):
            import torch
    except Exception as error:  # a broken installation raises what it likes
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            raise AgentError(
                "no_interpreter",
                "The interpreter {path} has no torch: install torch in it or set another interpreter.",
                path=sys.executable,
            ) from error
        raise AgentError(
            "no_interpreter",
            "The interpreter {path} cannot import torch ({error}): install torch in it again.",
            path=sys.executable,
            error=describe(error),
        ) from error
    version = str(getattr(torch, "__version__", ""))
    if _numbers(version) < OLDEST:
        raise AgentError(
            "no_interpreter",
            "The interpreter {path} has torch {version}, and EvoKernel works with {oldest} and newer: "
            "install a newer torch or set another interpreter.",
            path=sys.executable,
            version=version or Sentence("of no version"),
            oldest=".".join(map(str, OLDEST)),
        )
    return version


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))
