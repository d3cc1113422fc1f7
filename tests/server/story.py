"""The steps of the story, each as a person takes it in an editor. Nothing in between is replaced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import define

from evokernel_core.domain.serial import from_data
from evokernel_core.memory.store import Memory
from evokernel_core.package.write import Placed, read_package
from evokernel_core.targets.packages import write_package
from tests.server.conftest import Database, Editor, eventually

PATIENCE_S = 240.0
SETTINGS: dict[str, Any] = {"budget": 6, "leastGain": 0.002, "pauseS": 0.3}
"""Few attempts and small gains: the story is the server's, the quality of schedules is tested elsewhere."""


@define
class Story:
    """One editor with one open file."""

    editor: Editor
    database: Database
    path: Path
    uri: str = ""

    async def open(self) -> list[str]:
        """Opens the file; gives the labels of its hints once they are there."""
        self.uri = self.editor.open(self.path)
        hints = await eventually(lambda: self.editor.hints(self.uri), PATIENCE_S)
        return [str(hint.label) for hint in hints]

    async def act(self, words: str, title: str) -> dict[str, Any]:
        """Chooses a code action on the line that holds ``words``."""
        action = await self.editor.action(self.uri, self.editor.line_of(self.uri, words), title)
        return dict(await self.editor.run(action))

    async def generate(self, words: str) -> str:
        """Has a kernel written, which changes nothing, and accepts it; gives its name."""
        before, text = self.packages(), self.editor.texts[self.uri]
        answer = await self.act(words, "Generate NPU kernel")
        assert answer["status"] == "ready", answer
        assert (self.packages(), self.editor.texts[self.uri]) == (before, text)
        await eventually(lambda: self.editor.labels(self.uri, "⚡ ready "), PATIENCE_S)
        answer = await self.act(words, "Accept the ")
        assert answer["status"] == "applied", answer
        name = str(answer["name"])
        assert f"{name}.run(" in self.editor.texts[self.uri]
        return name

    def packages(self) -> set[str]:
        """The kernels beside the file."""
        return {folder.name for folder in (self.path.parent / "evokernel_kernels").glob("[!._]*_*")}

    async def refine(self, name: str, answers: list[str]) -> None:
        """The background has refined; a slower package comes back, as by a checkout; it refines again.

        ``answers`` are the person's to the offers that follow.
        """
        await self.quiet()
        bring_back_the_slowest(self.path, self.database.path, name)
        self.editor.answers = list(answers)
        assert (await self.act(f"{name}.run(", "Refine"))["status"] == "queued"
        await eventually(lambda: not self.editor.answers, PATIENCE_S)

    async def quiet(self) -> None:
        """Waits until every job is done."""
        await eventually(lambda: {state for _, state in self.database.jobs()} == {"done"}, PATIENCE_S)

    async def revert(self, name: str) -> None:
        answer = await self.act(f"{name}.run(", "Revert kernel")
        assert answer["status"] == "reverted", answer

    async def outcome(self, kind: str, times: int = 1) -> None:
        """Waits until an outcome has been recorded so often."""
        await eventually(lambda: self.kinds().count(kind) >= times, PATIENCE_S)
        assert self.kinds().count(kind) == times

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.database.outcomes()]


def bring_back_the_slowest(file: Path, memory_path: Path, name: str) -> None:
    """Puts the slowest verified kernel of a package's task into its place."""
    task, _, manifest = read_package(file.parent / "evokernel_kernels" / name)
    place = from_data({key: manifest["call"][key] for key in ("file", "symbol", "site")}, Placed)
    with Memory(memory_path) as memory:
        feasible = [item for item in memory.candidates(task.task_id) if item.verdict.latency]
    slowest = max(feasible, key=lambda item: item.verdict.latency.us if item.verdict.latency else 0.0)
    write_package(file.parent, task, place, slowest.source, slowest.verdict)


def moved(before: dict[str, float], after: dict[str, float]) -> bool:
    """Whether any value that was there is another now."""
    return any(after[item] != q for item, q in before.items())
