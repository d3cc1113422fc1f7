"""The tools for PyTorch files and their kernels: plan, brief, generate, verify, verdicts, apply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
from mcp.server.mcpserver import Context
from pydantic import Field

from evokernel_core.capture import finder
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.job import JobKind
from evokernel_core.domain.region import Region
from evokernel_core.domain.sentence import sentence_of
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.verdict import Verdict
from evokernel_core.synthesis.offers import why_left_alone
from evokernel_core.targets.sources import FILES, files_of
from evokernel_core.twin.gaps import Summary
from evokernel_mcp.access import Access
from evokernel_mcp.allowed import Allowed
from evokernel_mcp.answers import (
    AppliedAnswer,
    BriefAnswer,
    DefinitionAnswer,
    GenerateAnswer,
    PlanAnswer,
    TimelineAnswer,
    VerdictAnswer,
    VerdictsAnswer,
    longest_reason,
    part_of,
    planned_answer,
    timeline_answer,
    verdict_answer,
)
from evokernel_mcp.calls import answering, telling, working
from evokernel_mcp.context import state_of
from evokernel_mcp.foreign import named, quoted, told
from evokernel_mcp.inputs import MOST_SOURCE, Limit, Offset, Source

_FILES = ", or ".join(" and ".join(names) for names in FILES.values())
ModelPath = Annotated[str, Field(description="A Python file with PyTorch code, absolute or below a root.")]
RegionId = Annotated[str, Field(description="A region's id, from plan.", max_length=64)]
SourceId = Annotated[
    str, Field(description="A kernel's source_id, or its beginning.", min_length=6, max_length=64)
]


@answering
async def plan(
    path: ModelPath,
    ctx: Context,
    access: Allowed,
    symbol: Annotated[str, Field(description="Only this class or function, as Block.forward.")] = "",
    programs: Annotated[
        bool,
        Field(description="Also several kernels in a row, up to a whole forward: on unless given."),
    ] = True,
    offset: Offset = 0,
    limit: Limit = 20,
) -> PlanAnswer:
    """The regions of a PyTorch file: line, estimated gain and roofline limit of a kernel, or the reason
    why there is none. The file is imported for that, in its own Python, where its folder is trusted."""
    file = access.file(path)
    if not access.trust.covers(file):
        return await _parsed(file, access, symbol, offset, limit)
    async with telling(ctx, "Imports the file in its Python and traces it."):
        result = await state_of(ctx).plan(file, access, symbol, programs=programs)
    longest = longest_reason(len(result.offers[offset : offset + limit]))
    shown, more = part_of(result.offers, partial(planned_answer, longest=longest), offset, limit)
    return PlanAnswer(
        path=str(file),
        trusted=True,
        regions=shown,
        total=len(result.offers),
        next_offset=more,
        interpreter=result.interpreter,
        chip=state_of(ctx).pool.settings.chip,
        note="" if result.offers else "Nothing in it is code that a kernel could replace.",
    )


async def _parsed(file: Path, access: Access, symbol: str, offset: int, limit: int) -> PlanAnswer:
    """What a file says without being run."""
    text = await anyio.to_thread.run_sync(access.text, file)
    result = await anyio.to_thread.run_sync(lambda: finder.find(finder.Document(text)))
    asked = [element for element in result if not symbol or element.qualname.startswith(symbol)]
    shown, more = part_of(asked, _definition, offset, limit)
    return PlanAnswer(
        path=str(file),
        trusted=False,
        definitions=shown,
        total=len(asked),
        next_offset=more,
        note=f"{quoted(str(file.parent))} is not trusted, so the file is parsed and not run; with --trust "
        "and that folder the server plans its kernels.",
    )


def _definition(definition: finder.Definition) -> DefinitionAnswer:
    return DefinitionAnswer(
        symbol=named(definition.qualname),
        line=definition.span.line,
        end_line=definition.span.end_line,
        inputs_known=definition.has_inputs or bool(definition.annotation),
    )


@answering
async def brief(path: ModelPath, region: RegionId, ctx: Context, access: Allowed) -> BriefAnswer:
    """What a kernel for a region has to compute, for writing it yourself: tensors, sizes, steps, tolerance,
    bound; and a guide (resource) with the interface, the hardware's rules, API cards and an example."""
    result = await _region(ctx, path, region, access)
    answer = await working(
        ctx,
        "Gathers what is known.",
        "brief",
        {"region": to_data(result), "near": str(Path(result.file).parent)},
    )
    uri = state_of(ctx).keep_guide(result.id, answer["guide"])
    task = answer["task"]
    return BriefAnswer(
        tensors=task["tensors"],
        scalars=task["scalars"],
        sizes=[
            f"{name} = {size} when timed; any {name} >= {least} must work"
            for name, size, least in task["symbols"]
        ],
        inputs=[
            f"{operand['kind']} {operand['name']}: {operand['dtype']} {operand['shape']}"
            for operand in task["inputs"]
        ],
        steps=task["steps"],
        outputs=[
            f"{output['name']} = {output['value']}: {output['dtype']} {output['shape']}"
            for output in task["outputs"]
        ],
        rtol=task["rtol"],
        atol=task["atol"],
        bound_us=round(answer["bound_us"], 3),
        guide=uri,
        guide_characters=len(answer["guide"]),
    )


@answering
async def generate(
    path: ModelPath,
    region: RegionId,
    ctx: Context,
    access: Allowed,
    budget: Annotated[
        int, Field(ge=1, le=200, description="Kernels that are tried at most, 1 to 200; 10 unless given.")
    ] = 10,
    until: Annotated[
        Literal["budget", "first"],
        Field(description="End when the budget is used up, as unless given, or at a verified kernel."),
    ] = "budget",
) -> GenerateAnswer:
    """Writes, compiles, runs, checks against PyTorch and times kernels for a region. Seconds to minutes, with
    progress; what was tried is remembered, so a call that was cut off can be made again."""
    state = state_of(ctx)
    match = await _region(ctx, path, region, access)
    near = str(Path(match.file).parent)
    kind = JobKind.GENERATE if until == "first" else JobKind.REFINE
    params = {"region": to_data(match), "budget": budget, "mode": kind.value, "near": near}
    answer = await working(ctx, "Writes the first kernel.", "synthesise", params)
    offer = await state.offer(Path(match.file), region, access)
    rival = offer.estimate.rival if offer.estimate else None
    result = GenerateAnswer(
        status=answer["status"],
        reason=told(sentence_of(answer["reason"])),
        attempts=answer["attempts"],
        first_us=answer["first_latency_us"],
        vendor=rival.name if rival else "",
        vendor_us=rival.figures[0][0] if rival else None,
    )
    if answer["best"] is None:
        return result
    kernel, verdict = await _kernel(ctx, answer["best"]["source_id"], near)
    assert verdict.latency is not None  # of a best kernel
    return result.model_copy(update={"kernel": kernel, "left_alone": why_left_alone(verdict.latency, rival)})


async def _kernel(ctx: Context, source_id: str, near: str) -> tuple[VerdictAnswer, Verdict]:
    """A kernel's latest verdict."""
    result = await state_of(ctx).pool.request("kernel", {"source_id": source_id, "near": near})
    if not result["verdicts"]:
        raise UsageError(
            "The kernel {kernel} was never verified here: verify it for a region.", kernel=source_id[:12]
        )
    verdict = from_data(result["verdicts"][-1], Verdict)
    return verdict_answer(result["source_id"], verdict, result["notes"], result["files"]), verdict


@answering
async def verify_kernel(
    path: ModelPath,
    region: RegionId,
    ctx: Context,
    access: Allowed,
    folder: Annotated[str, Field(description=f"A folder with {_FILES}.")] = "",
    files: Annotated[
        dict[str, Source] | None, Field(description="Their texts by name, in place of a folder.")
    ] = None,
    target: Annotated[str, Field(description="The language; the server's own unless given.")] = "",
) -> VerdictAnswer:
    """Verifies a kernel that you wrote for a region: audit, compile, correctness against PyTorch on random
    sizes and inputs, estimated time. Failures say the line and what to do."""
    target = target or state_of(ctx).target
    texts = _texts(files_of(target), folder, files or {}, access)
    result = await _region(ctx, path, region, access)
    params = {
        "region": to_data(result),
        "target": target,
        "files": texts,
        "near": str(Path(result.file).parent),
    }
    answer = await working(ctx, "Audits, compiles, runs and compares.", "judge", params)
    judged = verdict_answer(answer["source_id"], from_data(answer["verdict"], Verdict))
    return judged.model_copy(update={"sources": []})  # the agent has them


def _texts(names: Sequence[str], folder: str, given: Mapping[str, str], access: Access) -> dict[str, str]:
    """The files of a kernel from a folder, or as they are given. Raises UsageError."""
    if bool(folder) == bool(given):
        raise UsageError(
            "Give either a folder with {files}, or their texts as files.", files=" and ".join(names)
        )
    if folder:
        place = access.folder(folder)
        given = {name: access.text(access.file(str(place / name))) for name in names}
    if given.keys() != set(names) or not all(0 < len(text) <= MOST_SOURCE for text in given.values()):
        raise UsageError(
            "The files {files} are needed and no others, each with at most {most} characters.",
            files=" and ".join(names),
            most=MOST_SOURCE,
        )
    return dict(given)


@answering
async def verify_package(
    path: Annotated[str, Field(description="A folder in evokernel_kernels/.")],
    ctx: Context,
    access: Allowed,
    changed: Annotated[bool, Field(description="Verify the files although they were changed.")] = False,
) -> VerdictAnswer:
    """Verifies a kernel package again, as evokernel verify does. Its reference runs in a sandbox, or in the
    project's Python where its folder is trusted."""
    place = access.folder(path)
    trusted = access.trust.covers(place)
    params = {
        "folder": str(place),
        "changed": changed,
        "trusted": trusted,
        "near": str(place) if trusted else "",
    }
    answer = await working(ctx, "Audits, compiles, runs and compares.", "verify_package", params)
    notes = [answer["foreign"]] if answer["foreign"] else []
    result = verdict_answer(answer["source_id"], from_data(answer["verdict"], Verdict), notes)
    return result.model_copy(update={"sources": []})  # they are the package's own files


@answering
async def verdict(source_id: SourceId, ctx: Context, access: Allowed) -> VerdictAnswer:
    """The latest verdict on a kernel in the memory: gates, hazards, latency by pipe and its hottest lines."""
    region, _ = await _kernel(ctx, source_id, access.near)
    return region


@answering
async def timeline(
    path: ModelPath, region: RegionId, source_id: SourceId, ctx: Context, access: Allowed
) -> TimelineAnswer:
    """How a verified kernel spends its launch: each pipe's share, its bottleneck, the longest gaps with the
    line that they stand before, and the whole as a page. Times it once more on the twin."""
    result = await _region(ctx, path, region, access)
    near = str(Path(result.file).parent)
    whole = (await state_of(ctx).pool.request("kernel", {"source_id": source_id, "near": near}))["source_id"]
    params = {"region": to_data(result), "source_id": whole, "near": near}
    answer = await working(ctx, "Times the kernel again.", "timeline", params)
    return timeline_answer(whole, answer["path"], from_data(answer["summary"], Summary))


@answering
async def kernels(
    path: ModelPath, region: RegionId, ctx: Context, access: Allowed, offset: Offset = 0, limit: Limit = 5
) -> VerdictsAnswer:
    """All kernels that were tried for a region with their verdicts, the fastest verified one first."""
    result = await _region(ctx, path, region, access)
    params = {"region": to_data(result), "near": str(Path(result.file).parent)}
    rows = (await state_of(ctx).pool.request("kernels", params))["kernels"]
    shown, more = part_of(rows, _tried, offset, limit)
    return VerdictsAnswer(kernels=shown, total=len(rows), next_offset=more)


def _tried(row: dict[str, Any]) -> VerdictAnswer:
    verdict = from_data(row["verdict"], Verdict)
    return verdict_answer(row["source_id"], verdict, row["notes"], row["files"])


@answering
async def apply(
    path: ModelPath, region: RegionId, source_id: SourceId, ctx: Context, access: Allowed
) -> AppliedAnswer:
    """Writes a verified kernel's package beside the file and puts its call into the file, as evokernel synth
    --apply does. Off the device, and where a guard fails, the original code runs as before."""
    access.writable()
    result = await _region(ctx, path, region, access)
    params = {"region": to_data(result), "source_id": source_id, "near": str(Path(result.file).parent)}
    answer = await working(ctx, "Writes the package.", "apply", params)
    return AppliedAnswer(
        path=result.file,
        package=answer["dir"],
        name=answer["name"],
        note="Regions of the file have moved: plan it again before the next call.",
    )


async def _region(ctx: Context, path: str, region: str, access: Access) -> Region:
    """A region for which a kernel can be written; its file is planned again where its text has changed."""
    async with telling(ctx, "Imports the file in its Python and traces it."):
        return await state_of(ctx).region(access.file(path), region, access)
