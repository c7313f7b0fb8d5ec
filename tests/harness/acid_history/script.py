"""A history in words, to be read, and as Python, to be played again."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum


def in_words(value: object) -> str:
    """A step as one short line; what is as it usually is stays unsaid."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(in_words, value))}]"
    if is_dataclass(value) and not isinstance(value, type):
        said = [
            f"{field.name} {in_words(found)}"
            for field in fields(value)
            if (found := getattr(value, field.name)) != field.default
        ]
        return f"{type(value).__name__} {', '.join(said)}".rstrip()
    return str(value)


def as_python(value: object) -> str:
    """An expression that makes an equal value, with the names of ``steps``, ``plan`` and ``partition``."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, tuple):
        return f"({''.join(f'{as_python(item)}, ' for item in value)})"
    if is_dataclass(value) and not isinstance(value, type):
        arguments = (f"{field.name}={as_python(getattr(value, field.name))}" for field in fields(value))
        return f"{type(value).__name__}({', '.join(arguments)})"
    return repr(value)
