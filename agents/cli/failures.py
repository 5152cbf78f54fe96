"""Failures outside the program (signals, streams, files), each reported in a sentence."""

import signal
import sys
from io import TextIOWrapper

_ENDING = ("SIGTERM", "SIGHUP")


def describe(error: BaseException) -> str:
    """Return an error as a sentence; for operating system errors, with the file's name."""
    if isinstance(error, MemoryError):
        return "there is too little memory"
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror[:1].lower() + error.strerror[1:]
        return reason if error.filename is None else f"{error.filename}: {reason}"
    return str(error)


def end_as_interrupted() -> None:
    """Make signals that end the process act like Ctrl-C; ignored ones stay ignored."""
    for name in _ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def _interrupt(*_: object) -> None:
    # A shell without job control lets what it starts in the background ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt
    # By the signal and not by an exception: an event loop knows how to end on it.
    signal.raise_signal(signal.SIGINT)


def write_anything() -> None:
    """Let standard output and errors replace characters that their encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
