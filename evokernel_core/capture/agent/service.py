"""The agent's methods: ping, calls, capture, compare, reference, shutdown."""

from __future__ import annotations

import gc
import platform
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import AgentError, describe
from .loading.imports import Imports
from .protocol import Handler, serve, take_channel
from .sentence import Sentence


@contextmanager
def importing(module: str) -> Iterator[None]:
    """The collector is off in a block that imports a module for the first time: nothing of what is imported
    becomes garbage. What is there at the end stays, and later collections do not look through it again."""
    if module in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


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


def _ping(_: dict[str, Any]) -> dict[str, Any]:
    return {"python": platform.python_version(), "torch": require_torch()}


def _capture(params: dict[str, Any]) -> Any:
    with importing(f"{__package__}.regions.capture"):
        from .inputs.trials import Known
        from .regions.capture import Asked, capture

    asked = Asked(
        params.get("symbol"),
        params.get("whole", False),
        params.get("ways", {}),
        params.get("evaluation", False),
    )
    known = Known(params["annotations"], params.get("observations", []), params.get("group", 0))
    imports = _imports(params)
    return capture(params["path"], params["text"], imports, params["fusible"], known, asked)


def _compare(params: dict[str, Any]) -> Any:
    with importing(f"{__package__}.eager.compare"):
        from .eager.compare import Captures, Wanted, compare
        from .inputs.trials import Known
        from .regions.capture import Asked

    known = Known(params["annotations"], params["observations"], params["group"])
    ways = [
        (way["fusible"], Asked(params["symbol"], way["whole"], way["ways"], params["evaluation"]))
        for way in params["captures"]
    ]
    wanted = Wanted(**params["wanted"])
    return compare(params["path"], params["text"], _imports(params), wanted, Captures(ways, known))


def _calls(params: dict[str, Any]) -> Any:
    with importing(f"{__package__}.inputs.calls"):
        from .inputs.calls import calls

    return calls(params["path"], params["text"], _imports(params))


def _imports(params: dict[str, Any]) -> Imports:
    return Imports.read(Path(params["path"]), params["imports"])


def _reference(params: dict[str, Any]) -> Any:
    with importing(f"{__package__}.reference.reference"):
        from .reference.reference import reference

    return reference(
        params["graph"],
        params["sizes"],
        params["seed"],
        params["distribution"],
        params["folder"],
        rounded=params["rounded"],
    )


def _guarded(handler: Handler) -> Handler:
    """Every failure becomes an answer: the loop must outlive the user's code."""

    def call(params: dict[str, Any]) -> Any:
        try:
            require_torch()
            return handler(params)
        except AgentError:
            raise
        except BaseException as error:
            traceback.print_exc()
            raise AgentError("agent_failed", _internal(error)) from error

    return call


def _internal(error: BaseException) -> str:
    return Sentence(
        "The torch agent could not finish this request ({error}): see its log, then try again.",
        error=describe(error),
    )


def main() -> None:
    """Serve on stdin and stdout until the client goes away."""
    reader, writer = take_channel()
    handlers: dict[str, Handler] = {
        "ping": _ping, "calls": _calls, "capture": _capture, "compare": _compare,
        "reference": _reference,
    }  # fmt: skip
    guarded = {name: _guarded(handler) for name, handler in handlers.items()}
    serve(reader, writer, {**guarded, "shutdown": lambda _: None})
