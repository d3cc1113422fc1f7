"""Ends this process with the one that started it, also when that one is killed.

The process forks: the child goes on, and the parent waits for it and for the end of a pipe whose other
end whoever wants the work holds open. When that closes, the child is killed, with the process group where
the parent leads one. A thread in the child could not do that, for code that holds the interpreter's lock
lets no thread run. The death signal of Linux alone could not either: it comes when the *thread* ends that
started the process.

As a script it runs another program in the same way, with an empty standard input in place of the pipe, or
with its own where the pipe is another descriptor:

    python watcher.py PROGRAM [ARGUMENT]... [--until-eof DESCRIPTOR]
"""

import contextlib
import os
import select
import signal
import sys
import threading

OPTION = "--until-eof"
"""In front of the pipe's descriptor among the agent's arguments."""
_PR_SET_PDEATHSIG = 1
"""linux/prctl.h"""


def watch_as_told(arguments: list[str]) -> None:
    """Takes ``--until-eof DESCRIPTOR`` out of the arguments and watches that pipe; without it, nothing."""
    if OPTION in arguments:
        at = arguments.index(OPTION)
        pipe = int(arguments[at + 1])
        del arguments[at : at + 2]
        watch(pipe)
        os.close(pipe)


def watch(pipe: int) -> None:
    """Returns in a process that ends with the pipe; at once where processes cannot be forked."""
    if not hasattr(os, "fork"):
        return
    watcher = os.getpid()
    child = os.fork()
    if child:
        _stay(child, pipe)
    _die_with(watcher)


def _die_with(watcher: int) -> None:
    """Linux ends this process with the watcher too: the thread that forked waits until then."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != watcher:
        os._exit(1)


def _stay(child: int, pipe: int) -> None:
    """Waits for the child and ends as it ended. Standard output stays open until then: its reader asks for
    the exit status when it closes."""
    import resource

    target = 0 if os.getpgrp() == os.getpid() else child
    threading.Thread(target=_kill_at_eof, args=(pipe, target), daemon=True).start()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError):  # what SIGKILL does cannot be set
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def _kill_at_eof(pipe: int, target: int) -> None:
    poll = select.poll()
    poll.register(pipe, 0)  # the end of the pipe is told in any case
    poll.poll()
    os.kill(target, signal.SIGKILL)


if __name__ == "__main__":
    if OPTION in sys.argv:
        watch_as_told(sys.argv)
    else:
        watch(0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
    os.execvp(sys.argv[1], sys.argv[1:])
