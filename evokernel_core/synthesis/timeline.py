"""The timeline of a verified kernel as a page: its launch at full size, timed once more on the twin."""

from __future__ import annotations

from evokernel_core import __version__
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import VerifierError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.serial import dumps, loads
from evokernel_core.domain.task import KernelTask
from evokernel_core.paths import cache_dir
from evokernel_core.private import private_folder
from evokernel_core.targets import load_toolchain
from evokernel_core.twin.build import CandidateError
from evokernel_core.twin.gaps import Summary, Timeline
from evokernel_core.twin.page_words import page_version
from evokernel_core.verifier.gates.latency import captured_request


def timeline_of(task: KernelTask, source: KernelSource, author: KernelAuthor) -> Timeline:
    """The timeline of a kernel, from the cache where it was made before. Its times are modelled, also those
    of a kernel that was measured. Raises VerifierError where the kernel cannot be timed, BuildError,
    OSError."""
    folder = private_folder(cache_dir() / "timelines")
    kernel = f"{source.source_id[:32]}-{task.task_id[:16]}"
    page = folder / f"{kernel}-{author.device.name}-{__version__}-{page_version()}.html"
    kept = page.with_suffix(".json")
    if page.is_file() and kept.is_file():
        return Timeline(page, loads(kept.read_text("utf-8"), Summary))
    staged = page.with_suffix(".part")
    toolchain = load_toolchain(source.target)
    try:
        summary: Summary = toolchain.write_timeline(author, task, source, captured_request(task), staged)
    except CandidateError as error:
        raise VerifierError(
            "The kernel could not be timed again: {feedback}", feedback=error.feedback
        ) from error
    staged.replace(page)
    staged.write_text(dumps(summary), "utf-8")
    staged.replace(kept)
    return Timeline(page, summary)
