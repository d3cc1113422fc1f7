"""From a model's words to a kernel: a strict reading, whose errors tell the model what to do."""

from __future__ import annotations

import json
import re
from typing import Any

from evokernel_core.domain.errors import ProposerError
from evokernel_core.domain.kernel import Descriptor, KernelSource, Strategy

LONGEST_FILE = 65_536
"""Characters of the longest file; a hand-written kernel has a tenth of that."""
MOST_NOTES = 8
LONGEST_NOTE = 240

FIELDS = ("tiling_h", "op_kernel_cpp", "notes")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": list(FIELDS),
    "properties": {
        "tiling_h": {"type": "string", "description": "The whole text of tiling.h."},
        "op_kernel_cpp": {"type": "string", "description": "The whole text of op_kernel.cpp."},
        "notes": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The schedule in a few short sentences: tiles, buffers, core split, and why.",
        },
    },
}

_FENCE = re.compile(r"\A\s*```[a-zA-Z]*\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)
_DOUBLE = re.compile(r"InitBuffer\s*\(\s*\w+\s*,\s*(?:2|\w*(?:BUFFER|buffer|Buffer)\w*)\s*,")


def read_answer(text: str, *, structured: bool, move: str) -> KernelSource:
    """The kernel in an answer. Raises ProposerError with a sentence for the next attempt.

    ``structured`` says that the endpoint promised JSON; otherwise one code fence around it is taken
    off. ``move`` names the refinement step, empty for a draft.
    """
    data = _json(text if structured else _unfenced(text))
    if not isinstance(data, dict):
        raise ProposerError("The model's answer was not a JSON object; answer with exactly one object.")
    if not data.keys() >= set(FIELDS):
        raise ProposerError(f"The model's answer must have the fields {', '.join(FIELDS)}.")
    tiling, kernel = _file(data["tiling_h"], "tiling_h"), _file(data["op_kernel_cpp"], "op_kernel_cpp")
    strategy = Strategy("model", notes=_notes(data["notes"]), descriptor=describe(kernel), move=move)
    return KernelSource(tiling, kernel, strategy)


def describe(kernel: str) -> Descriptor:
    """The archive cell that the text of a kernel suggests; coarse, as nothing is executed."""
    copies = 3 if _DOUBLE.search(kernel) else 2
    memory = copies if "DataCopy" in kernel else 0
    reductions = len(set(re.findall(r"\b(?:Whole|Block|Pair|Repeat)?Reduce\w+", kernel)))
    return Descriptor(memory, min(reductions, 3), 1 if "GetBlockIdx" in kernel else 0)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProposerError(
            "The model's answer was not JSON; answer with exactly one JSON object."
        ) from error


def _unfenced(text: str) -> str:
    fenced = _FENCE.match(text)
    return fenced.group(1) if fenced else text


def _file(text: Any, name: str) -> str:
    """The file with Unix line ends and one newline at its end."""
    if not isinstance(text, str) or not text.strip():
        raise ProposerError(f"The model's {name} was empty; write the whole file.")
    if len(text) > LONGEST_FILE:
        raise ProposerError(f"The model's {name} has more than {LONGEST_FILE} characters; write less.")
    clean = text.removeprefix("\ufeff").replace("\r\n", "\n").strip("\n") + "\n"
    if not all(character.isprintable() or character in "\n\t" for character in clean):
        raise ProposerError(f"The model's {name} holds control characters; write plain text.")
    return clean


def _notes(notes: Any) -> tuple[str, ...]:
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise ProposerError("The model's notes must be a list of strings.")
    return tuple(_plain(note)[:LONGEST_NOTE] for note in notes[:MOST_NOTES] if _plain(note))


def _plain(note: str) -> str:
    """One line of what can be printed."""
    return "".join(c for c in " ".join(note.split()) if c.isprintable())
