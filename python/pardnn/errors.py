"""What ends a run with one message instead of a traceback."""

from __future__ import annotations


class Refusal(RuntimeError):  # noqa: N818  an answer, not an error
    """Something the user has to know and can change; the message says what and how.

    ``status`` is the exit status of ``pardnn run``: 1 where the answer to a valid question is no,
    2 where the question was wrong.
    """

    status = 1


class UsageError(Refusal):
    """A wrong option, file or environment."""

    status = 2
