"""What an agent can read: kernels of the memory, guides, and two pages of the documentation."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping

from evokernel_server.jobs.worker import WorkerError
from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from evokernel_core.domain.errors import EvoKernelError, UsageError
from evokernel_core.domain.kernel_files import KernelFiles
from evokernel_core.targets import KERNEL_FILES
from evokernel_core.twin import hazards
from evokernel_core.visible import visible
from evokernel_mcp.foreign import named, refusal
from evokernel_mcp.state import ServerState

_KERNEL = re.compile(r"evokernel://kernel/([0-9a-f]{6,64})/([A-Za-z0-9_.-]{1,64})")
_INTERFACE = re.compile(r"evokernel://docs/kernel-abi(?:/(\w{1,16}))?")
_GUIDE = re.compile(r"evokernel://guide/([0-9a-f]{1,64})")


async def text_of(uri: str, state: ServerState, near: str) -> str:
    """A resource's text; ``near`` is a trusted folder, or empty.

    Raises UsageError for one that is not there, WorkerError."""
    if uri == "evokernel://docs/hazards":
        return hazards.as_page()
    if match := _INTERFACE.fullmatch(uri):
        params = {"cores": match[1] or "", "near": near}
        return str((await state.pool.request("interface", params))["text"])
    if match := _GUIDE.fullmatch(uri):
        return state.guide(match[1])
    if match := _KERNEL.fullmatch(uri):
        params = {"source_id": match[1], "near": near}
        files = (await state.pool.request("kernel", params))["files"]
        if match[2] in files:
            return str(files[match[2]])
        raise UsageError(
            "That kernel has no file {name}; it has {files}.", name=match[2], files=" and ".join(files)
        )
    raise UsageError(
        "There is no resource {uri}: there are evokernel://docs/hazards, "
        "evokernel://docs/kernel-abi (of AscendC /cube and /both, too), and those that tools name.",
        uri=uri[:200],
    )


def resources_of(state: ServerState) -> Mapping[str, Callable[..., Awaitable[str]]]:
    """The readers of all resources by URI; what they say of themselves is told to clients."""

    async def text(uri: str) -> str:
        try:
            return visible(await text_of(uri, state, ""))
        except EvoKernelError as error:
            said = refusal(error, own=not isinstance(error, WorkerError))
            raise ResourceNotFoundError(visible(said)) from error

    async def hazards_page() -> str:
        """Every code that the twin reports, what it is, and what helps."""
        return await text("evokernel://docs/hazards")

    async def kernel_abi() -> str:
        """The interface of a kernel, of AscendC on vector cores, and the hardware's rules."""
        return await text("evokernel://docs/kernel-abi")

    async def kernel_abi_of(cores: str) -> str:
        """The interface of a kernel in AscendC on vector, cube or both cores."""
        return await text(f"evokernel://docs/kernel-abi/{cores}")

    async def guide(region: str) -> str:
        """All that is known for a kernel of a region that brief was called for."""
        return await text(f"evokernel://guide/{region}")

    async def kernel_source(source_id: str, name: str) -> str:
        """A file of a kernel in the memory, as a verdict's sources name it."""
        return await text(f"evokernel://kernel/{source_id}/{name}")

    return {
        "evokernel://docs/hazards": hazards_page,
        "evokernel://docs/kernel-abi": kernel_abi,
        "evokernel://docs/kernel-abi/{cores}": kernel_abi_of,
        "evokernel://guide/{region}": guide,
        "evokernel://kernel/{source_id}/{name}": kernel_source,
    }


def prompts_of(state: ServerState) -> tuple[Callable[[str], str], ...]:
    """What clients offer people to ask."""

    def write_kernel(path: str) -> str:
        """How to write, check and install a kernel for a PyTorch file with these tools."""
        return how_to_write(path, KERNEL_FILES[state.target])

    return (write_kernel,)


def how_to_write(path: str, kernel: KernelFiles) -> str:
    """The steps, for kernels of a target."""
    files = " and ".join(kernel.names)
    return (
        f"Write a kernel in {kernel.title} for {named(path)} with the evokernel tools.\n"
        "1. plan the file; take the region with the largest gain that is not within_error.\n"
        "2. generate it with a small budget: that gives a verified kernel to beat.\n"
        "3. brief the region and read its guide; look up in search_memory what is in doubt.\n"
        f"4. Write {files}, or edit those of the generated kernel, and verify_kernel.\n"
        "5. For each hazard read explain, fix the line it names, and verify again; hot_lines and pipes of "
        "the verdict show the bottleneck of a correct kernel.\n"
        "6. Report the verdict with its latency and the word estimated or measured. Use apply only where the "
        "user wants the file changed and the tool is there."
    )
