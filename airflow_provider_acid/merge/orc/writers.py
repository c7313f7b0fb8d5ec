"""Who wrote an ORC file: what readers take from it, and what a file of several writers' stripes may say of itself.

Readers use ``writer`` of the footer and ``writerVersion`` of the postscript to know which mistakes of writers they must
expect, and for nothing else. ORC's Java library, in Hive 3.1 and 4: below 6 no limits of timestamps are used, at
6 none of decimals of up to 18 digits, below 3 and 6 Bloom filters of strings and timestamps are read in another way.
``WriterVersion.includes`` trusts the files of every other writer with all of its own corrections. Of the C++ library's
files it leaves Bloom filters aside where ``softwareVersion`` is missing, or below 1.8. The C++ library compares numbers
alone (0, and 6 for timestamps), Trino looks at 0 only. (``OrcFile.WriterVersion``, ``RecordReaderImpl``,
``StripePlanner``, ``BloomFilterIO``; ``PredicateLeaf.cc``, ``Reader.cc``.)
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from airflow_provider_acid.merge.orc.schema import Kind, OrcType
from airflow_provider_acid.merge.orc.sections import Sections

_JAVA = 0
_CPP = 1

_ORC_135 = 6
"""First version of all writers but Java's, and Java's first with limits of timestamps in UTC."""

_ORC_14 = 9
"""The last version of Java's writer that is known here."""

_SHORT_DECIMAL_DIGITS = 18
_FIRST_CPP_RELEASE = (1, 8)

_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True)
class OrcWriter:
    """What a file says of its writer.

    :param writer: ``Footer.writer``.
    :param version: ``PostScript.writerVersion``.
    :param software: ``Footer.softwareVersion``; empty where the file names none.
    """

    writer: int
    version: int
    software: str

    @classmethod
    def of(cls, sections: Sections) -> OrcWriter:
        """The writer that a file names."""
        return cls(sections.footer.writer, sections.postscript.writerVersion, sections.footer.softwareVersion)

    @property
    def is_cpp(self) -> bool:
        """Whether ORC's C++ library wrote it."""
        return self.writer == _CPP

    def may_share(self, schema: OrcType) -> bool:
        """Whether its stripes may lie in one file with those of other writers of which this holds too.

        :param schema: of the file.
        """
        if self.is_cpp:
            return self.version == _ORC_135 and _release(self.software) >= _FIRST_CPP_RELEASE
        if self.writer != _JAVA:
            return False
        # Readers mistrust the limits of version 6, so a file that says 6 would cost the other stripes theirs.
        return _ORC_135 < self.version <= _ORC_14 or (self.version == _ORC_135 and not _has_short_decimals(schema))


def common_writer(writers: Collection[OrcWriter]) -> OrcWriter:
    """What a file of stripes of several writers says: no more than holds for each of them.

    :param writers: at least one; each :meth:`~OrcWriter.may_share`.
    """
    of_java = [found for found in writers if found.writer == _JAVA]
    if of_java:
        releases = {found.software for found in writers}
        software = releases.pop() if len(of_java) == len(writers) and len(releases) == 1 else ""
        return OrcWriter(_JAVA, min(found.version for found in of_java), software)
    return min(writers, key=lambda found: _release(found.software))


def _release(text: str) -> tuple[int, ...]:
    found = _RELEASE.match(text)
    return tuple(map(int, found.groups())) if found else ()


def _has_short_decimals(schema: OrcType) -> bool:
    decimals = (node for node in schema.walk() if node.kind is Kind.DECIMAL)
    return any(node.parameters["precision"] <= _SHORT_DECIMAL_DIGITS for node in decimals)
