"""The tools for AscendC as such: run it on the twin, explain what it found, look things up."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from pydantic import BaseModel, Field

from evokernel_core.domain.errors import UsageError
from evokernel_core.twin import hazards
from evokernel_core.twin.hazards import HazardRule
from evokernel_core.visible import visible
from evokernel_mcp.access import Access
from evokernel_mcp.allowed import Allowed
from evokernel_mcp.answers import (
    MOST_ANSWER,
    MOST_NAME,
    MOST_TEXT,
    HazardCodeAnswer,
    HazardRuleAnswer,
    Kind,
    LaunchAnswer,
    MemoryAnswer,
    MemoryItemAnswer,
    OperatorAnswer,
    OutputAnswer,
    RunAnswer,
    hazard_answers,
    part_of,
)
from evokernel_mcp.calls import answering, working
from evokernel_mcp.context import state_of
from evokernel_mcp.foreign import named, quoted, told
from evokernel_mcp.inputs import MOST_SOURCE, BareLaunch, Limit, Offset
from evokernel_mcp.resources import text_of

MOST_BODY = 1_200
"""Characters of an item that a search tells; read has the rest."""
MOST_PRINTED = 2_000
MOST_READ = 30_000
"""Characters of a resource: Gemini CLI cuts an answer of more than 40,000."""

Mode = Annotated[
    Literal["check", "time"],
    Field(
        description="check, unless given: on data, with hazards and races; time: the estimated latency alone."
    ),
]
Seconds = Annotated[
    float, Field(gt=0, le=600, description="Seconds that the run may take, up to 600; 60 unless given.")
]
Defines = Annotated[list[str], Field(max_length=100, description="Macros as NAME=VALUE.")]
Folders = Annotated[list[str], Field(max_length=50, description="Folders for included files.")]
AutoSync = Annotated[
    bool,
    Field(description="Whether the compiler inserts barriers (--cce-auto-sync): on unless given."),
]


class TextAnswer(BaseModel):
    uri: str
    text: str
    total_characters: int
    next_offset: int | None = None


@answering
async def run(  # noqa: PLR0913, PLR0917 - a tool's inputs
    entry: Annotated[str, Field(description="The __global__ function to launch.", max_length=200)],
    launch: BareLaunch,
    ctx: Context,
    access: Allowed,
    path: Annotated[str, Field(description="The AscendC file, in a trusted folder.")] = "",
    text: Annotated[
        str, Field(description="The source itself, in place of a file.", max_length=MOST_SOURCE)
    ] = "",
    mode: Mode = "check",
    includes: Folders = [],  # noqa: B006 - copied by the server for each call
    defines: Defines = [],  # noqa: B006
    auto_sync: AutoSync = True,
    limit_s: Seconds = 60,
) -> RunAnswer:
    """Compiles an AscendC kernel for the CPU and launches it: hazards and races with their lines, what the
    outputs hold and where they differ from a reference, estimated time by pipe. Files of the launch are
    looked for beside the source; nothing is written there."""
    where = _source(path, text, access)
    params = _run_params(where, access, mode, includes, defines)
    more = {"entry": entry, "launch": launch.as_file(), "auto_sync": auto_sync, "limit_s": limit_s}
    return _run_answer(await working(ctx, "Compiles and runs.", "run", params | where | more))


@answering
async def run_program(  # noqa: PLR0913, PLR0917 - a tool's inputs
    path: Annotated[str, Field(description="A file with its own main, aclrt calls and <<<>>>.")],
    ctx: Context,
    access: Allowed,
    arguments: Annotated[list[str], Field(max_length=100)] = [],  # noqa: B006 - copied for each call
    mode: Mode = "check",
    includes: Folders = [],  # noqa: B006
    defines: Defines = [],  # noqa: B006
    auto_sync: AutoSync = True,
    limit_s: Seconds = 60,
) -> RunAnswer:
    """Compiles a program with its own main for the CPU and runs it in its folder, where it may write."""
    access.writable()
    where = _source(path, "", access)
    params = _run_params(where, access, mode, includes, defines)
    more = {"arguments": arguments, "auto_sync": auto_sync, "limit_s": limit_s}
    return _run_answer(await working(ctx, "Compiles and runs.", "run", params | where | more))


def _source(path: str, text: str, access: Access) -> dict[str, str]:
    """Where the code is, and where its files are looked for. Raises UsageError."""
    if bool(path) == bool(text):
        raise UsageError("Give either path, a file, or text, the code itself.")
    if path:
        source = access.trusted(access.file(path))
        access.text(source)
        return {"source": str(source), "folder": str(source.parent)}
    if not access.trusted_roots:
        raise UsageError(
            "No folder is trusted, so no code is run: the user can start the server with --trust."
        )
    return {"text": text, "folder": access.near}


def _run_params(
    where: dict[str, str], access: Access, mode: str, includes: list[str], defines: list[str]
) -> dict[str, Any]:
    return {
        "near": where["folder"],
        "roots": [str(root) for root in access.roots],
        "mode": mode,
        "includes": [str(access.folder(folder)) for folder in includes],
        "defines": defines,
    }


def _run_answer(known: dict[str, Any]) -> RunAnswer:
    shown, more = hazard_answers(known["hazards"])
    return RunAnswer(
        ok=known["ok"],
        error=told(known["error"], MOST_TEXT),
        hazards=shown,
        more_hazards=more,
        launches=[_launch(launch, timed=known["ok"]) for launch in known["launches"][:20]],
        latency_us=known["latency_us"] if known["ok"] else None,
        outputs=[OutputAnswer(**{**output, "name": named(output["name"])}) for output in known["outputs"]],
        printed=quoted(known["output"], MOST_PRINTED),
        compile_s=known["compile_s"],
        run_s=known["run_s"],
    )


def _launch(launch: dict[str, Any], *, timed: bool) -> LaunchAnswer:
    """A launch; what a run took that failed says nothing of the kernel."""
    known = launch if timed else {name: launch[name] for name in ("kernel", "block_dim")}
    return LaunchAnswer(**{**known, "kernel": named(launch["kernel"])})


@answering
async def run_op(
    path: Annotated[str, Field(description="An operator's folder with op_kernel and op_host, trusted.")],
    ctx: Context,
    access: Allowed,
    case: Annotated[
        str, Field(description="A CASE.json of a call; without it the operator is compiled.")
    ] = "",
    mode: Mode = "check",
    auto_sync: AutoSync = True,
    limit_s: Seconds = 60,
) -> OperatorAnswer:
    """Compiles an operator of a CANN project (op_kernel, op_host), and runs a call of it with its own tiling,
    as evokernel twin run-op does: what is missing, hazards with lines, correctness, estimated time."""
    place = access.trusted(access.folder(path))
    params = {
        "near": str(place),
        "folder": str(place),
        "roots": [str(root) for root in access.roots],
        "case": str(access.trusted(access.file(case))) if case else "",
        "mode": mode,
        "auto_sync": auto_sync,
        "limit_s": limit_s,
    }
    result = await working(ctx, "Compiles the operator.", "run_operator", params)
    shown, more = hazard_answers(result["hazards"])
    return OperatorAnswer(
        **{name: result[name] for name in ("compiled", "ran", "right", "compared")},
        latency_us=result["latency_us"] if result["ran"] and not result["error"] else None,
        missing=[named(name, MOST_NAME) for name in result["missing"]],
        error=told(result["error"], MOST_TEXT),
        hazards=shown,
        more_hazards=more,
    )


@answering
async def explain(
    code: Annotated[
        str, Field(description="A code, as missing-sync, or words, as race; none: all codes.", max_length=64)
    ] = "",
    offset: Offset = 0,
    limit: Limit = 20,
) -> HazardRuleAnswer:
    """What a hazard's code means, and how to fix it; for words the codes that they speak of, without any the
    list of all codes."""
    result = hazards.find(code)
    if len(result) > 1:
        shown, more = part_of(result, _code, offset, limit)
        return HazardRuleAnswer(codes=shown, next_offset=more)
    rule = result[0] if result else hazards.explain(code)
    return HazardRuleAnswer(code=rule.code, severity=rule.severity, what=rule.what, help=rule.help)


def _code(rule: HazardRule) -> HazardCodeAnswer:
    return HazardCodeAnswer(code=rule.code, severity=rule.severity, what=rule.what)


@answering
async def search_memory(
    query: Annotated[
        str, Field(description="Words: a function, an error, an operation.", min_length=2, max_length=400)
    ],
    ctx: Context,
    access: Allowed,
    kinds: Annotated[list[Kind], Field(description="Only these kinds; none: all.")] = [],  # noqa: B006
    offset: Offset = 0,
    limit: Limit = 5,
) -> MemoryAnswer:
    """Looks up functions of AscendC (api_card: signatures, limits, costs), practices, and what was learned
    from earlier kernels: failures and their repair, successes, rules."""
    params = {"query": query, "kinds": kinds, "most": offset + limit + 1, "near": access.near}
    result = (await state_of(ctx).pool.request("search", params))["items"]
    shown, more = part_of(result, _item, offset, limit)
    return MemoryAnswer(items=shown, next_offset=more)


def _item(entry: dict[str, Any]) -> MemoryItemAnswer:
    ours = entry["shipped"]
    return MemoryItemAnswer(
        id=entry["id"][:16],
        kind=entry["kind"],
        title=entry["title"] if ours else quoted(entry["title"], MOST_NAME),
        body=entry["body"][:MOST_BODY] if ours else quoted(entry["body"], MOST_BODY),
        category=entry["op_category"] if ours else named(entry["op_category"], MOST_NAME),
    )


@answering
async def read(
    uri: Annotated[str, Field(description="A resource, as evokernel://docs/hazards.", max_length=300)],
    ctx: Context,
    access: Allowed,
    offset: Offset = 0,
    limit: Annotated[
        int, Field(ge=100, le=MOST_READ, description="Characters, 100 to 30000; 8000 unless given.")
    ] = MOST_ANSWER,
) -> TextAnswer:
    """Reads a resource of this server in parts, for clients that do not read resources themselves."""
    text = visible(await text_of(uri, state_of(ctx), access.near))
    more = offset + limit < len(text)
    return TextAnswer(
        uri=uri,
        text=text[offset : offset + limit],
        total_characters=len(text),
        next_offset=offset + limit if more else None,
    )
