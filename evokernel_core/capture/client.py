"""AgentClient: captures regions and computes references in the user's interpreter."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from attrs import field, frozen

from evokernel_core.capture import agent
from evokernel_core.capture.calls import FileCalls
from evokernel_core.capture.channel import AgentEnded, Channel
from evokernel_core.capture.observations import observations_of, observed_paths
from evokernel_core.capture.reference import ReferenceCase
from evokernel_core.capture.regions import Outline, regions_of
from evokernel_core.capture.text import read_python
from evokernel_core.closing import Closing
from evokernel_core.domain.admission import admit
from evokernel_core.domain.eager import EagerComparison
from evokernel_core.domain.errors import (
    AgentFailed,
    CaptureError,
    ImportFailed,
    InterpreterUnavailable,
    ShapesNeeded,
    UnsupportedRegion,
)
from evokernel_core.domain.region import Region
from evokernel_core.domain.sentence import sentence_of
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.import_root import import_path

_ERRORS: Mapping[str, type[CaptureError]] = {
    error.reason: error
    for error in (AgentFailed, ImportFailed, InterpreterUnavailable, ShapesNeeded, UnsupportedRegion)
}
_CACHE_SIZE = 64
Way = Literal["parts", "fixed"]
_TIMES_WHOLE = 3
"""A trace of whole functions may take so many times as long as other calls."""
COMPARE_S = 60.0
"""Seconds of a comparison with the user's own code, with the capture of it; what is left then is said."""
COMPARE_BYTES = 4 << 30
"""Memory that it may take beyond what the agent has."""
REFERENCE_S = 900.0
"""A reference runs a fixed graph, no code of the user's: it always ends, late where a network is deep."""

log = logging.getLogger(__name__)


@frozen
class CaptureWay:
    """How a file is captured: as ``AgentClient.capture`` says."""

    fusible: Mapping[str, str]
    whole: bool = False
    ways: Mapping[str, Way] = field(factory=dict)


class AgentClient(Closing):
    """Owns one agent process, started on first use and again after it failed. With ``evaluation`` modules
    are called in that mode, which is the one that kernels serve: code through which gradients flow runs as it
    was written.

    Captures of the same text are answered from a cache. ``timeout_s`` bounds each call. The agent runs behind
    ``prefix``, a sandbox's command line, where there is one, and sees ``environment`` in place of this
    process's. Not for use by several threads at once.
    """

    def __init__(
        self,
        interpreter: str,
        *,
        timeout_s: float = 60,
        evaluation: bool = False,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._interpreter = interpreter
        self._prefix = tuple(prefix)
        self._environment = environment
        self._evaluation = evaluation
        self.timeout_s = timeout_s
        self._channel: Channel | None = None
        self._captures: dict[str, tuple[Region, ...]] = {}

    def ping(self) -> dict[str, str]:
        """``{"python", "torch"}`` versions. Raises InterpreterUnavailable or AgentFailed."""
        versions: dict[str, str] = self._call("ping", {})
        return versions

    def capture(
        self,
        path: Path,
        text: str | None,
        fusible: Mapping[str, str],
        symbol: str | None = None,
        *,
        whole: bool = False,
        ways: Mapping[str, Way] = MappingProxyType({}),
        group: int = 0,
    ) -> tuple[Region, ...]:
        """The regions of a file, in source order; ``text`` is the editor's text, None for the file's.

        A region is what one kernel can compute, or with ``whole`` what several in a row can;
        functions may be taken otherwise then: only in parts, or with all sizes but those of batches fixed.
        ``group`` is the number of the input group that
        the file is called with, where it has several.
        Raises ShapesNeeded, ImportFailed, InterpreterUnavailable or AgentFailed.
        """
        path = path.absolute()
        text = read_python(path) if text is None else text
        outline = Outline.of(text)
        params = {
            "path": str(path), "text": text, "fusible": dict(fusible),
            "annotations": outline.annotations, "symbol": symbol, "whole": whole,
            "ways": dict(ways), "group": group, "evaluation": self._evaluation,
            "observations": observations_of(path), "imports": self._imports(path),
        }  # fmt: skip
        key = hashlib.sha256(repr(sorted(params.items(), key=str)).encode()).hexdigest()
        if key not in self._captures:
            answer = self._call("capture", params, _TIMES_WHOLE * self.timeout_s if whole else None)
            for traceback in answer.get("defects", ()):
                log.error("The torch agent met a defect of EvoKernel in %s:\n%s", path, traceback)
            self._captures[key] = regions_of(path, text, answer, outline, symbol)
            while len(self._captures) > _CACHE_SIZE:
                self._captures.pop(next(iter(self._captures)))
        return self._captures[key]

    def calls(self, path: Path) -> FileCalls:
        """The calls that a file supplies inputs for. Raises as ``capture``."""
        path = path.absolute()
        params = {"path": str(path), "text": read_python(path), "imports": self._imports(path)}
        answer = self._call("calls", params)
        return from_data(answer, FileCalls)

    def _imports(self, path: Path) -> dict[str, Any]:
        """Where a file's imports are looked for, as the agent takes it."""
        result = import_path(path, self._given.get("PYTHONPATH", ""))
        first = dict.fromkeys((*map(str, result.first), *observed_paths(path)))
        return {"root": str(result.root), "first": list(first), "last": list(map(str, result.last))}

    @property
    def _given(self) -> Mapping[str, str]:
        return os.environ if self._environment is None else self._environment

    def compare(
        self, region: Region, text: str, captures: Sequence[CaptureWay], *, group: int = 0
    ) -> EagerComparison:
        """A region's own code, run eagerly beside its graph on several draws, in a fork of the agent that is
        bounded in time and memory. ``text`` is that of the region's file; ``captures`` are the ways of a
        capture that may have given the region, in the order in which they are tried. Raises as ``capture``,
        and UnsupportedRegion for a region without a task."""
        if region.task is None:
            raise UnsupportedRegion(region.reason)
        path, span = Path(region.file).absolute(), region.span
        wanted = {
            "symbol": region.symbol,
            "span": [span.line, span.column, span.end_line, span.end_column],
            "graph": to_data(region.task.graph),
            "symbols": to_data(region.task.symbols),
            "seconds": COMPARE_S,
            "bytes": COMPARE_BYTES,
        }
        params = {
            "path": str(path), "text": text, "annotations": Outline.of(text).annotations,
            "symbol": region.symbol, "group": group, "evaluation": self._evaluation,
            "observations": observations_of(path), "wanted": wanted, "imports": self._imports(path),
            "captures": [
                {"fusible": dict(capture.fusible), "whole": capture.whole, "ways": dict(capture.ways)}
                for capture in captures
            ],
        }  # fmt: skip
        return from_data(self._call("compare", params, 2 * COMPARE_S), EagerComparison)

    def reference(
        self,
        task: KernelTask,
        sizes: Mapping[str, int],
        seed: int,
        distribution: str,
        folder: Path,
        *,
        rounded: bool = False,
    ) -> ReferenceCase:
        """Write inputs and PyTorch's outputs for one case into ``folder``. Raises AgentFailed, and
        TaskRefused before anything of the task runs."""
        admit(task)
        folder.mkdir(parents=True, exist_ok=True)
        params = {
            "graph": to_data(task.graph), "sizes": dict(sizes), "seed": seed,
            "distribution": distribution, "folder": str(folder.absolute()), "rounded": rounded,
        }  # fmt: skip
        answer = self._call("reference", params, REFERENCE_S)
        return ReferenceCase(
            inputs=tuple(map(Path, answer["inputs"])),
            scalars=tuple(answer["scalars"]),
            outputs=tuple(map(Path, answer["outputs"])),
            precise=tuple(map(Path, answer["precise"])),
            rounded=tuple(map(Path, answer["rounded"])),
            rounds=bool(answer["rounds"]),
            beside=tuple(tuple(map(Path, side)) for side in answer["beside"]),
        )

    def close(self) -> None:
        """End the agent; the next call starts a new one."""
        if self._channel is not None:
            self._channel.kill()
            self._channel = None

    @property
    def pid(self) -> int | None:
        """The number of the agent's process, None while there is none."""
        return self._channel.pid if self._channel is not None else None

    def last_words(self) -> str:
        """What the agent and the user's code wrote last."""
        return self._channel.last_words() if self._channel else ""

    def _call(self, method: str, params: dict[str, Any], timeout_s: float | None = None) -> Any:
        answer = self._answer(method, params, timeout_s)
        if (answer.get("error", {}).get("data") or {}).get("stale"):
            self.close()
            answer = self._answer(method, params, timeout_s)
        if "error" in answer:
            error = answer["error"]
            reason = (error.get("data") or {}).get("reason", "")
            raise _ERRORS.get(reason, AgentFailed)(sentence_of(error["message"]))
        return answer["result"]

    def _answer(self, method: str, params: dict[str, Any], timeout_s: float | None) -> dict[str, Any]:
        """One that was killed, as an idle one may be where memory is short, is started again silently; a
        second end in a row is the file's."""
        try:
            return self._ask(method, params, timeout_s)
        except AgentEnded as error:
            log.info("The torch agent is started again: %s", error)
            return self._ask(method, params, timeout_s)

    def _ask(self, method: str, params: dict[str, Any], timeout_s: float | None) -> dict[str, Any]:
        if self._channel is None or not self._channel.alive:
            self.close()
            self._channel = self._spawn()
        try:
            return self._channel.request(method, params, timeout_s or self.timeout_s)
        except AgentFailed:
            self._channel = None
            raise

    def _spawn(self) -> Channel:
        folder = Path(agent.__file__).parent
        hidden = {"EVOKERNEL_API_KEY", "EVOKERNEL_VERIFIER_TOKEN"}
        environment = {name: value for name, value in self._given.items() if name not in hidden}
        environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        environment["TORCHDYNAMO_DISABLE"] = "1"  # @torch.compile leaves a function as it is
        command: tuple[str, ...] = (self._interpreter, "-I", str(folder))
        if self._prefix:  # a sandbox lets no process be watched from within
            watcher = (self._interpreter, "-I", str(folder / "watcher.py"))
            command = (*watcher, *self._prefix, *command)
        return Channel(command, environment)
