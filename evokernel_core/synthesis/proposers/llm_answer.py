"""From a model's words to a kernel: what stands around it is left aside, the kernel is read strictly, with
errors that tell the model what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evokernel_core.domain.earlier_sources import FIELDS as FIELD_NAMES
from evokernel_core.domain.errors import AnswerUnreadable, NothingToGain
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.synthesis.proposers.llm_text import NOTHING_MARK, Edit, applied, bare, edits, sections
from evokernel_core.targets import load_knowledge
from evokernel_core.targets.sources import files_of

LONGEST_FILE = 65_536
"""Characters of the longest file; a hand-written kernel has a tenth of that."""
MOST_NOTES = 8
LONGEST_NOTE = 240
_BEGINNING = re.compile(r"\s*\ufeff?\s*(?:`{3,}\w*\s*)?")
_MOST_PLACES = 64
"""Braces among the words of an answer at which an object is looked for."""

FIELDS = ("files", "notes")
NOTHING = "nothing_to_gain"
"""The field that ends a refinement."""

_NOTES = {
    "type": "array",
    "items": {"type": "string"},
    "description": "The schedule in a few short sentences: tiles, buffers, core split, and why.",
}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def _texts(files: Sequence[str], kind: Any, more: str) -> dict[str, Any]:
    return _object(
        {name: {"type": kind, "description": f"The whole text of {name}{more}."} for name in files}
    )


def schema(target: str, *, refines: bool = False) -> dict[str, Any]:
    """The JSON schema of an answer with whole files of a target; one that ``refines`` may say that nothing
    is to gain. Raises UsageError for an unknown target."""
    kind, more = (["string", "null"], f", null where {NOTHING} is true") if refines else ("string", "")
    return _object({"files": _texts(files_of(target), kind, more), "notes": _NOTES, **_end(refines)})


def _end(refines: bool) -> dict[str, Any]:
    words = "True where no change would make the kernel faster; the notes then say why."
    return {NOTHING: {"type": "boolean", "description": words}} if refines else {}


def edit_schema(target: str, *, refines: bool = False) -> dict[str, Any]:
    """The same where most of a kernel may stay: it is long, or is repaired."""
    files = files_of(target)
    return _object(
        {
            "files": _texts(files, ["string", "null"], ", null if edited"),
            "edits": {
                "type": "array",
                "description": "Changes of files that are not given whole, in their order.",
                "items": _object(
                    {
                        "file": {"type": "string", "enum": list(files)},
                        "search": {"type": "string", "description": "Lines that stand once in the file."},
                        "replace": {"type": "string", "description": "Lines in their place."},
                    }
                ),
            },
            "notes": _NOTES,
            **_end(refines),
        }
    )


def read_answer(text: str, *, target: str, move: str, base: KernelSource | None = None) -> KernelSource:
    """The kernel in an answer: a JSON object, in a code fence or among words as models like to put it, or
    files under markers. A file that is left out, or edited, is that of ``base``, the kernel that the model
    was shown to change. Raises AnswerUnreadable with a sentence for the next attempt, and NothingToGain for a
    refinement that says so in place of a kernel.

    ``target`` is the language of the kernel, ``move`` names the refinement step, empty for a draft.
    """
    names = files_of(target)
    given, changes, notes, ends = _parts(text, names)
    if ends and move and not given and not changes:
        raise _nothing_to_gain(_notes(notes))
    texts: Mapping[str, str] = base.files if base else {}
    if not given and not changes:
        raise AnswerUnreadable("The model's answer has no file; give {files}.", files=" and ".join(names))
    if missing := [name for name in names if name not in given and name not in texts]:
        raise AnswerUnreadable(
            "The model's answer has no {missing}; give whole files.", missing=" and no ".join(missing)
        )
    made = applied({**texts, **given}, changes)
    files = {name: _file(made[name], name) for name in names}
    descriptor = load_knowledge(target).descriptor_of(files)
    return KernelSource(
        target, files, Strategy("model", notes=_notes(notes), descriptor=descriptor, move=move)
    )


Files = tuple[str, ...]
Parts = tuple[Mapping[str, Any], Sequence[Edit], Any, bool]


def _nothing_to_gain(notes: Sequence[str]) -> NothingToGain:
    if not notes:
        return NothingToGain("The model says that nothing is to gain.")
    return NothingToGain(Sentence("The model says that nothing is to gain: {why}", why=" ".join(notes)))


def _parts(text: str, names: Files) -> Parts:
    """Files by name, edits, notes, and whether nothing is to gain."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        result = sections(text, names)
        if any(name in result for name in (*names, NOTHING_MARK)):
            return _of_sections(result, names)
        data = next((data for data in _objects(text) if _is_kernel(data, names)), None)
        if data is None and _breaks_off(text):
            raise AnswerUnreadable(
                "The model's answer breaks off before its end; answer with shorter files."
            ) from None
        if data is None:
            raise AnswerUnreadable(
                "The model's answer was not JSON and has no file under a marker; answer in the format that "
                "was asked for."
            ) from None
    if not isinstance(data, dict):
        raise AnswerUnreadable("The model's answer was not a JSON object; answer with exactly one object.")
    if not _is_kernel(data, names):
        raise AnswerUnreadable("The model's answer must have the fields {fields}.", fields=", ".join(FIELDS))
    return _of_object(data, names)


def _breaks_off(text: str) -> bool:
    """Whether an object begins with the text, or with its fence, and has no end."""
    start = text.find("{")
    if start < 0 or not _BEGINNING.fullmatch(text, 0, start):
        return False
    try:
        json.JSONDecoder().raw_decode(text, start)
    except json.JSONDecodeError as error:
        return error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip())
    except RecursionError:
        pass
    return False


def _is_kernel(data: dict[str, Any], names: Files) -> bool:
    return "edits" in data or NOTHING in data or not _given(data).keys().isdisjoint(names)


def _given(data: dict[str, Any]) -> dict[str, Any]:
    """The files by name, as a model gives them: in one field, or, as earlier prompts asked, a field each."""
    flat = {name: data[field] for field, name in FIELD_NAMES.items() if field in data}
    files = data.get("files")
    return flat | (files if isinstance(files, dict) else {})


def _of_object(data: dict[str, Any], names: Files) -> Parts:
    """Null fields are those of files that are edited, or of a kernel from which nothing is to gain."""
    given, ends = _given(data), data.get(NOTHING) is True
    left_out = "edits" in data or NOTHING in data
    files = {name: given[name] for name in names if name in given and not (given[name] is None and left_out)}
    return files, _edits(data.get("edits") or []), data.get("notes"), ends


def _edits(data: Any) -> tuple[Edit, ...]:
    if not isinstance(data, list) or not all(
        isinstance(element, dict)
        and all(isinstance(element.get(key), str) for key in ("file", "search", "replace"))
        for element in data
    ):
        raise AnswerUnreadable("The model's edits must be objects of three texts: file, search and replace.")
    return tuple(
        Edit(element["file"], _unix(element["search"]), _unix(element["replace"])) for element in data
    )


def _of_sections(texts: Mapping[str, str], names: Files) -> Parts:
    files, changes = {}, list[Edit]()
    for name in names:
        if name in texts:
            blocks = edits(name, texts[name])
            changes += blocks
            if not blocks:
                files[name] = bare(texts[name])
    lines = [line.strip().lstrip("-*").strip() for line in bare(texts.get("notes", "")).split("\n")]
    ends = NOTHING_MARK in texts
    why = bare(texts.get(NOTHING_MARK, "")).split("\n")
    return files, changes, [line for line in [*map(str.strip, why), *lines] if line], ends


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
    text = text.removeprefix("\ufeff") if isinstance(text, str) else ""
    if not text.strip():
        raise AnswerUnreadable("The model's {name} was empty; write the whole file.", name=name)
    if len(text) > LONGEST_FILE:
        raise AnswerUnreadable(
            "The model's {name} has more than {most} characters; write less.", name=name, most=LONGEST_FILE
        )
    clean = _unix(text).strip("\n") + "\n"
    if not all(character.isprintable() or character in "\n\t" for character in clean):
        raise AnswerUnreadable("The model's {name} holds control characters; write plain text.", name=name)
    return clean


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _notes(notes: Any) -> tuple[str, ...]:
    """As far as they are texts, in a list or a single one: a kernel is not wrong for what is said of it."""
    given = notes.splitlines() if isinstance(notes, str) else notes if isinstance(notes, list) else []
    lines = [plain for note in given if isinstance(note, str) and (plain := _plain(note))]
    return tuple(line[:LONGEST_NOTE] for line in lines[:MOST_NOTES])


def _plain(note: str) -> str:
    """One line of what can be printed."""
    return "".join(c for c in " ".join(note.split()) if c.isprintable())
