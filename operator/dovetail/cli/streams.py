"""Standard output and error that end the command when nobody reads them: no error of the command's own."""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from typing_extensions import override

CLOSED_PIPE = 141
"""The status that shells show for a program that SIGPIPE ended: Python ignores that signal."""

UNEXPECTED = 70
"""A fault of the program itself, whatever it was asked: no status of a command's own (EX_SOFTWARE)."""

NOT_WRITTEN = 74
"""What was to be printed could not be written, to a full disk say (EX_IOERR)."""


class Stream(io.TextIOWrapper):
    """Text that ends the command where it cannot be written; what the encoding lacks is escaped."""

    @override
    def write(self, text: str, /) -> int:
        with _ending(self):
            return super().write(text)

    @override
    def flush(self) -> None:
        with _ending(self):
            super().flush()


@contextlib.contextmanager
def guarded_streams() -> Iterator[None]:
    """While the block lasts, standard output and error are such streams; at its end all is written."""
    before = sys.stdout, sys.stderr
    mine = _guarded(sys.stdout), _guarded(sys.stderr)
    sys.stdout, sys.stderr = mine
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in mine:
            if isinstance(stream, Stream):
                stream.detach()


def _guarded(stream: TextIO) -> TextIO:
    """The stream itself where it is none of the process's own, or closed."""
    if not isinstance(stream, io.TextIOWrapper) or isinstance(stream, Stream):
        return stream
    stream.flush()
    return Stream(
        stream.buffer,
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=True,
    )


@contextlib.contextmanager
def _ending(stream: Stream) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        _drop(stream)
        if error.errno == errno.EPIPE:
            raise SystemExit(CLOSED_PIPE) from error
        _say(f"error: the output cannot be written: {error.strerror}\n")
        raise SystemExit(NOT_WRITTEN) from error


def _drop(stream: Stream) -> None:
    """Nothing that is left goes anywhere: Python would try again at its end, and complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _say(words: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, words.encode())
