"""The texts that the compiler sees: one for each way in which a candidate's files are compiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from evokernel_core.targets.ascendc.audit.front_end import MAX_OWN_TEXT, preprocess
from evokernel_core.targets.ascendc.audit.own_text import OwnText, own_text
from evokernel_core.targets.ascendc.source import KERNEL, TILING
from evokernel_core.twin.build import (
    CandidateError,
    Twin,
    candidate_files,
    header_flags,
    kernel_flags,
    run_tool,
)
from evokernel_core.twin.compiler import candidate_feedback
from evokernel_core.twin.images import image_flags
from evokernel_core.twin.toolchain import SYSTEM_FOLDERS, Confinement, compiler_folders

GLUE = "glue.cpp"
OWN = (KERNEL, TILING)


def own_texts(twin: Twin, files: Mapping[str, str], work: Path) -> list[OwnText]:
    """The candidate's own text in the kernel's unit, for each image, and the tiling's in the glue's unit
    where it differs there, or where declarations before it in the kernel's may give its names another
    meaning. Raises CandidateError where the preprocessor fails."""
    written, two_images = candidate_files(files)
    for name, text in written.items():
        (work / name).write_text(text)
    texts = list(_kernel_texts(twin, work, two_images))
    tiling = _preprocessed(twin, work, GLUE, ()).of(TILING)
    if _comes_first(texts[0], KERNEL) or tiling.words() != texts[0].of(TILING).words():
        texts.append(tiling)
    return texts


def _comes_first(text: OwnText, file: str) -> bool:
    """Whether a file declares something before another one does."""
    return bool(text.lines) and text.lines[0][0] == file


def _kernel_texts(twin: Twin, work: Path, two_images: bool) -> Iterator[OwnText]:
    yield _preprocessed(twin, work, KERNEL, ())
    if two_images:
        yield _preprocessed(twin, work, KERNEL, image_flags(True))


def _preprocessed(twin: Twin, work: Path, file: str, image: tuple[str, ...]) -> OwnText:
    status, output, messages = preprocess(twin, work, file, image)
    if status:
        raise CandidateError("compile", candidate_feedback(messages, OWN))
    includes = (*SYSTEM_FOLDERS, *compiler_folders(twin.compiler), str(twin.include))
    result = own_text(output, (*OWN, *((GLUE,) if file == GLUE else ())), includes)
    if sum(len(text) for _, _, text in result.lines) > MAX_OWN_TEXT:
        raise CandidateError(
            "compile",
            "The kernel's macros expand to more than {most} MiB; write plain code.",
            most=MAX_OWN_TEXT >> 20,
        )
    return result


def explain(twin: Twin, work: Path) -> None:
    """Raises CandidateError with the compiler's errors where it does not understand the text either."""
    for name in (KERNEL, GLUE):
        flags = (*kernel_flags(twin.compiler), *header_flags(twin), "-I.", "-fsyntax-only", name)
        confinement = Confinement(work, (twin.folder,))
        status, output = run_tool(twin, [*twin.compiler.argv, *flags], work, confinement=confinement)
        if status:
            raise CandidateError("compile", candidate_feedback(output, OWN))
