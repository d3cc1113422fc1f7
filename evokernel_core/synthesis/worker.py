"""The child process in which the language server does everything slow: JSON lines on stdin and stdout.

    -> {"id": 0, "method": "configure", "params": <Settings JSON>}
    -> {"id": n, "method": M, "params": {...}}      M: regions, synthesise, package, borrow, plan, edit,
                                                    revert_edit, timeline and those of tools.py, for coding
                                                    agents
    -> {"method": "cancel", "params": {"id": n}}
    <- {"id": n, "event": {"kind": "attempt", ...}}
    <- {"id": n, "result": {...}} or {"id": n, "error": {"reason": CODE, "message": SENTENCE}}

Requests run in threads, so that a cancel is heard while a synthesis runs. At the end of stdin the
process and all its children end.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

from evokernel_core import temporary
from evokernel_core.domain.defects import contained
from evokernel_core.domain.errors import EvoKernelError, UsageError
from evokernel_core.domain.job import JobKind
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.region import Region
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.settings import Settings
from evokernel_core.synthesis.tools import TOOLS, Tool

Params = Mapping[str, Any]

AGENT_IDLE_S = 60.0
"""Seconds after which a torch agent that nobody needs is ended."""


class Worker:
    """Answers requests with one session, made on the first request that needs it."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._writing = threading.Lock()
        self._opening = threading.Lock()
        self._settings = Settings()
        self._session: Any = None
        self._cancelled: dict[int, threading.Event] = {}
        self._methods: Mapping[str, Callable[[int, Params], Mapping[str, Any]]] = {
            "regions": self._regions,
            "synthesise": self._synthesise,
            "preview": self._preview,
            "package": self._package,
            "borrow": self._borrow,
            "plan": self._plan,
            "timeline": self._timeline,
            "edit": self._edit,
            "revert_edit": self._revert_edit,
            **{name: partial(self._tool, tool) for name, tool in TOOLS.items()},
        }

    def serve(self, lines: IO[str]) -> None:
        """Reads requests until the end of input."""
        for line in lines:
            if line.strip():
                self._take(line)

    def close(self) -> None:
        for flag in self._cancelled.values():
            flag.set()

    def _take(self, line: str) -> None:
        try:
            message = json.loads(line)
            method, params = message["method"], message.get("params") or {}
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            self._send(
                {"id": None, "error": {"reason": "bad_request", "message": f"Not a request: {error}."}}
            )
            return
        if method == "cancel":
            if params.get("id") in self._cancelled:
                self._cancelled[params["id"]].set()
        elif method == "configure":
            self._answer(message["id"], method, lambda: self._configure(params))
        else:
            self._start(message["id"], method, params)

    def _start(self, id: int, method: str, params: Params) -> None:
        self._cancelled[id] = threading.Event()

        def work() -> None:
            try:
                self._answer(id, method, lambda: self._call(id, method, params))
            finally:
                self._cancelled.pop(id, None)

        threading.Thread(target=work, name=f"{method}-{id}", daemon=True).start()

    def _call(self, id: int, method: str, params: Params) -> Mapping[str, Any]:
        if method not in self._methods:
            raise UsageError(
                "The worker has no method {method}; use one of {methods}.",
                method=repr(method),
                methods=sorted(self._methods),
            )
        return self._methods[method](id, params)

    def _answer(self, id: int, method: str, work: Callable[[], Mapping[str, Any]]) -> None:
        """Sends a result or an error: the server must hear of every failure."""
        try:
            with contained(Sentence("answering {method}", method=repr(method))):
                self._send({"id": id, "result": work()})
        except EvoKernelError as error:
            self._send({"id": id, "error": {"reason": reason_of(error), "message": error.sentence.data()}})

    def _send(self, message: Mapping[str, Any]) -> None:
        text = json.dumps(message, allow_nan=False)
        with self._writing:
            self._out.write(text + "\n")
            self._out.flush()

    def _configure(self, params: Params) -> Mapping[str, Any]:
        self._settings = from_data(dict(params), Settings)
        with self._opening:
            session, self._session = self._session, None
        if session is not None:
            session.close()
        return {}

    def _open(self, near: Path | None, file: Path | None = None) -> Any:
        """The session; ``near`` is a folder whose code may be run, None where no such folder is known yet.
        The agent of ``file`` imports torch while the session's own modules are imported."""
        from evokernel_core.synthesis.agent import SharedAgent

        with self._opening:
            if self._session is None:
                settings = self._settings
                agent = SharedAgent(
                    settings.interpreter, near, evaluation=settings.evaluation, idle_s=AGENT_IDLE_S
                )
                if file is not None:
                    agent.start_soon(file)
                from evokernel_core.synthesis.session import Session

                self._session = Session(settings, near, agent=agent)
            elif self._session.agent.workspace is None:
                self._session.agent.workspace = near
            return self._session

    def _regions(self, id: int, params: Params) -> Mapping[str, Any]:
        path = Path(params["path"])
        session = self._open(Path(params.get("workspace") or path.parent), path)
        offers = session.offers(
            path,
            params.get("text"),
            params.get("symbol"),
            programs=bool(params.get("programs")),
            apart=bool(params.get("apart")),
            progress=partial(self._progress, id),
        )
        data = [to_data(offer) for offer in offers]
        return {"regions": data, "interpreter": Sentence(session.interpreter(path)).data()}

    def _progress(self, id: int, done: int, total: int, offer: Any) -> None:
        """Tells how far the single kernels are; ``offer`` is the last one, None at the beginning."""
        event = {"kind": "regions", "done": done, "total": total, "offer": to_data(offer) if offer else None}
        self._send({"id": id, "event": event})

    def _synthesise(self, id: int, params: Params) -> Mapping[str, Any]:
        region = from_data(params["region"], Region)
        session = self._open(Path(region.file).parent)
        kind = JobKind(params.get("mode", JobKind.GENERATE.value))
        result = session.synthesise(
            region,
            int(params["budget"]),
            job_id=str(params.get("job_id", "")),
            kind=kind,
            background=kind is JobKind.REFINE,
            on_attempt=lambda event: self._send({"id": id, "event": event_data(event)}),
            cancelled=self._cancelled[id].is_set,
        )
        best = result.best
        return {
            "status": result.status.value,
            "reason": result.reason.data(),
            "attempts": result.attempts,
            "first_latency_us": result.first_latency_us,
            "best": None
            if best is None
            else {
                "source_id": best.source.source_id,
                "latency": to_data(best.verdict.latency),
                "verifier": best.verdict.verifier,
                "confinement": best.verdict.confinement,
            },
        }

    def _tool(self, tool: Tool, id: int, params: Params) -> Mapping[str, Any]:
        near = Path(params["near"]) if params["near"] else None
        return tool(self._open(near), params, self._cancelled[id].is_set)

    def _preview(self, id: int, params: Params) -> Mapping[str, Any]:
        region = from_data(params["region"], Region)
        return {"text": self._open(Path(region.file).parent).preview(region)}

    def _package(self, id: int, params: Params) -> Mapping[str, Any]:
        region = from_data(params["region"], Region)
        package = self._open(Path(region.file).parent).package(region, params["source_id"])
        backup = str(package.backup or "")
        return {"name": package.name, "dir": str(package.folder), "backup": backup}

    def _borrow(self, id: int, params: Params) -> Mapping[str, Any]:
        region = from_data(params["region"], Region)
        package = self._open(Path(region.file).parent).borrow(region)
        return {"name": package.name, "dir": str(package.folder)}

    def _plan(self, id: int, params: Params) -> Mapping[str, Any]:
        """What applying the kernel ``source`` would do, with nothing written: the package's name, the edits
        of a text that does not call it yet, the guards in words, and the vendor's operator that computes the
        same."""
        from evokernel_core.hardware.devices import load_device
        from evokernel_core.package.guard_words import guard_words
        from evokernel_core.package.write import kernel_name, placed
        from evokernel_core.targets import load_packaging
        from evokernel_core.vendor.rival import rival_of

        region, source = from_data(params["region"], Region), from_data(params["source"], KernelSource)
        packaging = load_packaging(source.target)
        site, task = placed(region).site, region.task
        assert task is not None  # where there is a call site there is a task
        name = kernel_name(task, site)
        rival = rival_of(task, load_device(self._settings.chip))
        return {
            "name": name,
            **(self._edit(id, {**params, "name": name}) if "text" in params else {"edits": []}),
            "guards": [
                guard_word.data()
                for guard_word in guard_words(task, site, packaging.words, packaging.guards(task, source))
            ],
            "rival": to_data(rival) if rival else None,
        }

    def _timeline(self, id: int, params: Params) -> Mapping[str, Any]:
        region = from_data(params["region"], Region)
        result = self._open(Path(region.file).parent).timeline(region, params["source_id"])
        return {"path": str(result.page), "summary": to_data(result.summary)}

    def _edit(self, id: int, params: Params) -> Mapping[str, Any]:
        from evokernel_core.capture.edit import plan_edit

        return _edits(params, plan_edit)

    def _revert_edit(self, id: int, params: Params) -> Mapping[str, Any]:
        from evokernel_core.capture.edit import revert_edit

        return _edits(params, revert_edit)


def _edits(params: Params, edit: Callable[[str, Region, str], str]) -> Mapping[str, Any]:
    """What an edit of a region changes in a text."""
    from evokernel_core.capture.edit import minimal_edits

    text = params["text"]
    edited = edit(text, from_data(params["region"], Region), params["name"])
    return {"edits": [edit_data(change) for change in minimal_edits(text, edited)]}


def reason_of(error: EvoKernelError) -> str:
    """A stable code: the error's own reason, or its class in snake case (verifier_unavailable)."""
    own = getattr(error, "reason", "")
    return own or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).lower()


def event_data(event: Any) -> dict[str, Any]:
    """An AttemptEvent for the server."""
    from evokernel_core.synthesis.lessons import summary

    candidate = event.candidate
    latency = candidate.verdict.latency if candidate else None
    return {
        "kind": "attempt",
        "n": event.n,
        "budget": event.budget,
        "stage": event.stage.value,
        "feasible": candidate is not None and candidate.verdict.feasible,
        "latency_us": latency.us if latency else None,
        "best_us": event.best.us if event.best else None,
        "best_source": event.best.source.value if event.best else "",
        "verdict_summary": str(summary(candidate.verdict) if candidate else "No kernel was proposed."),
    }


def edit_data(change: Any) -> dict[str, Any]:
    """A TextChange with a range of 0-based lines and characters, as the server takes it."""
    span = change.span
    return {
        "range": {
            "start": {"line": span.line - 1, "character": span.column},
            "end": {"line": span.end_line - 1, "character": span.end_column},
        },
        "new_text": change.text,
    }


def end_children() -> None:
    """Kills everything that this process started, and what those started."""
    from evokernel_core.process_tree import descendants, kill_all

    kill_all(descendants())


def main() -> None:
    """Serves stdin until its end. Prints of the product's own code go to stderr."""
    logging.basicConfig(stream=sys.stderr, level=os.environ.get("EVOKERNEL_LOG", "WARNING").upper())
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    worker = Worker(out)
    try:
        worker.serve(sys.stdin)
    finally:
        worker.close()
        end_children()
        temporary.leave()
        os._exit(0)  # threads may be in a call that does not return


if __name__ == "__main__":
    main()
