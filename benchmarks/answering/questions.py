"""Questions and answers as files, for authors without an endpoint of their own.

FOLDER/TASK/N/question.md is what a model is told; who answers writes FOLDER/TASK/N/answer.txt beside it, or
answer.cut.txt (an answer that was cut off where the file ends) or answer.refused.txt. Of several samples the
second goes into answer.2.txt, the third into answer.3.txt, and so on.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from attrs import field, frozen

QUESTION = "question.md"
FINISHES = {"stop": "", "length": ".cut", "content_filter": ".refused"}
"""Why an answer ended, as the protocol says it, and what its file's name says of that."""
SETTLED_S, EMPTY_S = 1.0, 10.0
"""Seconds without a change after which a file is taken as written, and one that is empty."""
_SCHEMA = "\n\n# The answer\nOne JSON object of this schema, and nothing else:\n"


@frozen
class Answer:
    """The words of an answer, and why it ended there."""

    text: str
    finish: str = "stop"


def text_of(messages: Sequence[Mapping[str, str]], schema: Any = None) -> str:
    """The messages as a person reads them. The same for the same messages: a question is known by it."""
    parts = (f"----- {message['role']} -----\n{message['content'].strip()}\n" for message in messages)
    end = _SCHEMA + json.dumps(schema, indent=1) + "\n" if schema else ""
    return "\n".join(parts).rstrip("\n") + (end or "\n")


@frozen
class Questions:
    """Those of all tasks in a folder."""

    folder: Path
    _adding: threading.Lock = field(factory=threading.Lock, repr=False, eq=False)

    def add(self, task: str, text: str) -> Path:
        """The folder of a question: the one with the same text, else the task's next number."""
        with self._adding:
            for place in self.of(task):
                if (place / QUESTION).read_text() == text:
                    return place
            place = self.folder / task / str(len(self.of(task)) + 1)
            place.mkdir(parents=True)
            draft = place / f".{QUESTION}"
            draft.write_text(text)
            draft.rename(place / QUESTION)  # whoever waits for it sees all of it
            return place

    def of(self, task: str) -> list[Path]:
        """The folders of a task's questions, in their order."""
        found = (self.folder / task).glob(f"*/{QUESTION}")
        return sorted((path.parent for path in found), key=lambda place: int(place.name))

    def open(self) -> Iterator[Path]:
        """The questions of all tasks that nobody has answered."""
        for path in sorted(self.folder.glob(f"*/*/{QUESTION}")):
            if not any(path.parent.glob("answer*.txt")):
                yield path


def answers(place: Path) -> Iterator[Answer]:
    """The answers to a question in their order, up to the first that is missing or still being written."""
    for number in count(1):
        name = "answer" if number == 1 else f"answer.{number}"
        paths = {place / f"{name}{mark}.txt": finish for finish, mark in FINISHES.items()}
        path = next(filter(Path.is_file, paths), None)
        if path is None or not _is_settled(path):
            return
        yield Answer(path.read_text(errors="replace"), paths[path])


def _is_settled(path: Path) -> bool:
    about = path.stat()
    return time.time() - about.st_mtime > (SETTLED_S if about.st_size else EMPTY_S)
