"""From a model's words to a kernel: what stands around it is left aside, the kernel is read strictly, with
errors that tell the model what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from evokernel_core.domain.descriptor import Algorithm, Descriptor, Overlap, Split
from evokernel_core.domain.errors import ProposerError
from evokernel_core.domain.kernel import KernelSource, Strategy

LONGEST_FILE = 65_536
"""Characters of the longest file; a hand-written kernel has a tenth of that."""
MOST_NOTES = 8
LONGEST_NOTE = 240
_MOST_PLACES = 64
"""Braces among the words of an answer at which an object is looked for."""

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

_REDUCTION = re.compile(r"\b(?:Whole|Block|Pair|Repeat)?Reduce\w+")
_DOUBLE = re.compile(r"InitBuffer\s*\(\s*\w+\s*,\s*(?:2|\w*(?:BUFFER|buffer|Buffer)\w*)\s*,")


def read_answer(text: str, *, move: str) -> KernelSource:
    """The kernel in an answer: a JSON object, in a code fence or among words as models like to put it, fields
    beyond ours left aside. Raises ProposerError with a sentence for the next attempt.

    ``move`` names the refinement step, empty for a draft.
    """
    data = _json(text)
    if not isinstance(data, dict):
        raise ProposerError("The model's answer was not a JSON object; answer with exactly one object.")
    if not data.keys() >= set(FIELDS):
        raise ProposerError(f"The model's answer must have the fields {', '.join(FIELDS)}.")
    tiling, kernel = _file(data["tiling_h"], "tiling_h"), _file(data["op_kernel_cpp"], "op_kernel_cpp")
    strategy = Strategy("model", notes=_notes(data["notes"]), descriptor=describe(kernel), move=move)
    return KernelSource(tiling, kernel, strategy)


def describe(kernel: str) -> Descriptor:
    """The archive cell that the text of a kernel suggests; coarse, as nothing is executed. What its names do
    not say is unknown."""
    cube, reduces = "Mmad" in kernel, _REDUCTION.search(kernel) is not None
    vectors = Algorithm.SINGLE_PASS if reduces else Algorithm.DIRECT
    return Descriptor(
        split=Split.UNKNOWN if "GetBlockIdx" in kernel else Split.NOTHING,
        algorithm=Algorithm.MATRIX_PRODUCT if cube else vectors if "DataCopy" in kernel else Algorithm.SCALAR,
        overlap=Overlap.PIPELINED if _DOUBLE.search(kernel) else Overlap.NONE,
    )


def _json(text: str) -> Any:
    """The answer as JSON, or the first object in it that has a kernel's fields."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        found = next((data for data in _objects(text) if data.keys() >= set(FIELDS)), None)
        if found is None:
            asked = "The model's answer was not JSON; answer with exactly one JSON object."
            raise ProposerError(asked) from error
        return found


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects among words, from left to right."""
    decoder, place = json.JSONDecoder(), text.find("{")
    for _ in range(_MOST_PLACES):
        if place < 0:
            return
        try:
            data, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            yield data
        place = text.find("{", end)


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
