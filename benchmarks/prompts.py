"""Writes what a model is asked about twenty tasks of every category, for a reader.

    python benchmarks/prompts.py [FOLDER]

FOLDER (build/prompts) gets NAME.system.md, NAME.draft.md and NAME.refine.md for each function of
benchmarks/knowledge/prompted.py. The kernel to refine is the one that the schedule proposer drafts; its
figures are those of a launch at full size on the twin. Needs torch and a compiler.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from exemplars import captured

from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Verdict
from evokernel_core.hardware.ascend.chip import Chip, load_chip
from evokernel_core.synthesis.privacy import Privacy
from evokernel_core.synthesis.proposers.base import Candidate, Context
from evokernel_core.synthesis.proposers.llm_prompt import draft_prompt, refine_prompt
from evokernel_core.targets.ascendc.author import initial, write
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.knowledge import kind_of
from evokernel_core.targets.ascendc.knowledge.exemplars import nearest, simplified, source_of
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.verifier.gates.latency import captured_request, judge

FUNCTIONS = Path(__file__).parent / "knowledge" / "prompted.py"


def timed(task: KernelTask, chip: Chip) -> Candidate:
    """The author's draft with the figures of a launch; what a comparison with PyTorch would say is not asked.

    Raises CandidateError where the kernel does not run.
    """
    backend, source = TwinBackend(ascendc(chip)), write(task, initial(task, chip), chip)
    timing = backend.measure(backend.build(task, source), captured_request(task))
    result, latency = judge(task, backend, timing)
    gates = (GateResult(GateName.COMPILE, GateStatus.PASSED), result)
    return Candidate(source, Verdict(task.task_id, source.source_id, backend.name, gates, latency))


def prompts(task: KernelTask, chip: Chip) -> Iterator[tuple[str, str, int]]:
    """``system``, ``draft`` and ``refine`` with the text of each, and its characters with those of the system
    message, but for the kernel that it shows."""
    draft = draft_prompt(task, Context(), ascendc(chip), structured=True).messages
    yield "system", draft[0]["content"], len(draft[0]["content"])
    example = source_of(nearest(kind_of(task, chip), chip), chip)
    yield "draft", draft[1]["content"], beside(draft, map(simplified, example.files.values()))
    start = timed(task, chip)
    refine = refine_prompt(task, Context(start=start), ascendc(chip), structured=True).messages
    own = Privacy(task).files(start.source, ascendc(chip))
    yield "refine", refine[1]["content"], beside(refine, own.files.values())


def beside(messages: Iterable[Mapping[str, str]], code: Iterable[str]) -> int:
    """The characters of messages without the texts of a kernel. Raises ValueError where one is not shown."""
    text = "".join(message["content"] for message in messages)
    length = len(text)
    for file in code:
        text.index(file.strip("\n"))
        length -= len(file)
    return length


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("build/prompts")
    folder.mkdir(parents=True, exist_ok=True)
    chip = load_chip()
    for name, task in captured(FUNCTIONS):
        sizes = []
        for part, text, rest in prompts(task, chip):
            (folder / f"{name}.{part}.md").write_text(text)
            sizes.append(f"{part} {rest:6}")
        print(f"{name:24} {task.op_category:14} {'  '.join(sizes)} characters beside a kernel", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
