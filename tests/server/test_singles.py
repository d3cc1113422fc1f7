"""Single kernels are shown as they come, where the page has none yet."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from attrs import define, field
from evokernel_server.documents import capture as module
from evokernel_server.documents.capture import Capture
from evokernel_server.documents.workspace import Captured, Document
from evokernel_server.jobs.worker import Event, WorkerError

from evokernel_core.domain.serial import to_data
from tests.server.regions import captured, document, found

MODEL = "import torch\n" + "".join(f"y{n} = torch.softmax(x{n})\n" for n in range(3))


def offer(region: Captured) -> dict[str, Any]:
    return {"region": to_data(region.region), "estimate": to_data(region.estimate), "is_program": False}


@define(eq=False)
class Worker:
    """Tells a file's kernels one after another; at ``dies`` it begins again, as another in its place."""

    regions: tuple[Captured, ...]
    dies: int = -1
    fails: bool = False

    async def request_again(
        self, method: str, params: Mapping[str, Any], *, on_event: Event
    ) -> dict[str, Any]:
        count = len(self.regions)
        for number, region in [*enumerate(self.regions[: self.dies + 1]), *enumerate(self.regions)]:
            if number == 0:
                on_event({"kind": "regions", "done": 0, "total": count, "offer": None})
            on_event({"kind": "regions", "done": number + 1, "total": count, "offer": offer(region)})
        if self.fails:
            raise WorkerError("import_failed", "It failed.")
        return {"regions": list(map(offer, self.regions)), "interpreter": "python"}


@define(eq=False)
class Page:
    """A document, and how many regions it had whenever it changed."""

    document: Document
    seen: list[int] = field(factory=list)

    async def after(self, worker: Worker) -> list[int]:
        capture = Capture(
            worker,  # type: ignore[arg-type]
            pause_s=lambda: 0.0,
            changed=lambda changed: self.seen.append(len(changed.tracked)),
            enabled=lambda _: True,
            programs=lambda: False,
            progressed=lambda _: None,
            root_of=lambda _: "",
            runs_in=lambda _: None,
        )
        await capture.anew(self.document)
        await asyncio.sleep(0)
        return self.seen


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SHOWN_EVERY_S", 0.0)


REGIONS = tuple(region for region in found(document(MODEL).text) if region.region.op_category == "softmax")


async def test_a_page_without_kernels_shows_each_as_it_comes() -> None:
    assert await Page(document(MODEL)).after(Worker(REGIONS)) == [1, 2, 3, 3]


async def test_not_more_often_than_people_can_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SHOWN_EVERY_S", 3600.0)
    assert await Page(document(MODEL)).after(Worker(REGIONS)) == [1, 3]


async def test_a_page_with_kernels_keeps_them_until_all_are_there() -> None:
    assert await Page(captured(MODEL)).after(Worker(REGIONS)) == [3]


async def test_another_worker_begins_anew() -> None:
    assert await Page(document(MODEL)).after(Worker(REGIONS, dies=1)) == [1, 2, 1, 2, 3, 3]


async def test_what_came_before_a_failure_stays_beside_it() -> None:
    page = Page(document(MODEL))
    assert await page.after(Worker(REGIONS, fails=True)) == [1, 2, 3, 3]
    assert page.document.problem is not None and page.document.problem.reason == "import_failed"
