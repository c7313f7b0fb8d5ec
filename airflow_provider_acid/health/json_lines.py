"""Small files of the health store that hold objects, one as JSON on each line."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.exceptions import ConfigurationError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

log = logging.getLogger(__name__)


def to_lines(objects: Iterable[DataclassInstance]) -> bytes:
    """One JSON object a line."""
    return "".join(json.dumps(asdict(one), separators=(",", ":")) + "\n" for one in objects).encode()


def from_lines(kind: type[T], data: bytes, path: str) -> list[T]:
    """The objects of a file; other lines are passed over with a warning, for nothing depends on them.

    :param kind: their dataclass.
    :param path: of the file, for the warning.
    """
    found, passed_over = [], 0
    for line in io.BytesIO(data):
        try:
            found.append(fields.read_as(kind, fields.decoded(line, "record")))
        except ConfigurationError:
            passed_over += 1
    if passed_over:
        log.warning("%d lines of the health store's file %s are no records of this release", passed_over, path)
    return found
