"""What is forked from a prepared parent is what Python itself would be."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator

import pytest

from tests import warm

SAYS = "import os, sys; print(os.read(int(sys.argv[1]), 9).decode(), len(os.listdir('/dev/fd')))"


@pytest.fixture
def many_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, before[1]), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("number", [63, 64, 255, 256, 320, 1025])
def test_a_pipe_of_any_number_is_handed_on(number: int, many_files: None) -> None:
    """A worker of the tests may have many files open: the pipe with which an agent ends has a high number
    then, and an agent without it ends at once."""
    end, held = os.pipe()
    os.dup2(end, number, inheritable=True)
    os.write(held, b"a message")
    try:
        command = [warm.interpreter("json"), "-c", SAYS, str(number)]
        said = subprocess.run(
            command, pass_fds=(number,), capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        for file in {end, held, number}:
            os.close(file)
    assert (said.stdout, said.stderr) == ("a message 5\n", "")  # three, the pipe and the folder itself
