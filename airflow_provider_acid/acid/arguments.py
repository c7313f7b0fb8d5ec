"""Texts as arguments of the Spark application, in characters that every cluster manager hands over as they are.

YARN makes a line for bash of them: ``{{`` becomes ``$``, ``}}`` nothing, ``<LOG_DIR>`` and its like their values, and
bash takes backslashes and backquotes for itself. What is not ASCII depends on the node's locale.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

_KEPT = ' "+,/:=@[]'
"""Beside letters, digits and ``_.-~``. Spark quotes a space and ``"`` itself; they keep the logs readable."""


def as_argument(text: str) -> str:
    """A text with all else as ``%XX``."""
    return quote(text, safe=_KEPT)


def from_argument(argument: str) -> str:
    """The text of :func:`as_argument`.

    :raises UnicodeDecodeError: it was made by somebody else.
    """
    return unquote(argument, errors="strict")
