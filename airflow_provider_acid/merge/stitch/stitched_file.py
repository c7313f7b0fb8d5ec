"""A file with ACID columns that is put together of stripes: other files', copied as bytes, and newly written ones.

ORC's writers write whole files. Of what one writes here its first bytes and its tail are left away, and its stripes lie
in the output from the beginning: no temporary file, and never an unsealed one. The tail is made here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from airflow_provider_acid.exceptions import CorruptFileError, VerificationError
from airflow_provider_acid.merge.files.file_copy import CACHED_BYTES, CHUNK_BYTES
from airflow_provider_acid.merge.files.sealed_output import SealedOutput, acid_metadata, sealed_output
from airflow_provider_acid.merge.files.source_files import SourceReader, damage_named
from airflow_provider_acid.merge.keys.acid_keys import DAMAGED, Key
from airflow_provider_acid.merge.orc.bounds import MAGIC
from airflow_provider_acid.merge.orc.codec import CompressionKind
from airflow_provider_acid.merge.orc.messages import message_class
from airflow_provider_acid.merge.orc.schema import OrcType
from airflow_provider_acid.merge.orc.sections import Sections, stripe_bytes
from airflow_provider_acid.merge.orc.stripes_statistics import merge_statistics
from airflow_provider_acid.merge.orc.tail import declare_types
from airflow_provider_acid.merge.orc.writers import OrcWriter, common_writer
from airflow_provider_acid.merge.stitch.stripe_donors import FILE_VERSION, Donor
from airflow_provider_acid.plan.plan import OrcOptions


class StitchedFile:
    """The file while it is written.

    :param name: how errors call it.
    :param file: takes it from its first byte on.
    :param takes_digests: of what it copies.
    """

    def __init__(self, name: str, file: BinaryIO, *, takes_digests: bool = False) -> None:
        self._name = name
        self._file = file
        self._takes_digests = takes_digests
        self._stripes: list[Any] = []
        self._statistics: list[Any] = []
        self._writers: set[OrcWriter] = set()
        self._block_bytes = 0
        file.write(MAGIC)
        self._end = len(MAGIC)

    @property
    def stripes(self) -> int:
        """Number of stripes so far."""
        return len(self._stripes)

    def copy(self, reader: SourceReader, donor: Donor, stripe: int) -> bytes | None:
        """Append a stripe of another file.

        :returns: SHA-256 of its bytes, where digests are taken.
        :raises CorruptFileError: the file ends before the stripe.
        """
        source = donor.sections.footer.stripes[stripe]
        digest = self._append(reader, source.offset, stripe_bytes(source))
        self._add(donor.sections, stripe)
        return digest

    @contextmanager
    def part(self) -> Iterator[SealedOutput]:
        """What an ORC writer may write a whole file to, and close; its stripes are then those of this file.

        :raises StorageError: the file cannot be written.
        :raises VerificationError: the writer's stripes do not lie as they should.
        """
        with sealed_output(self._name, cast(BinaryIO, _WithoutMagic(self._file))) as output:
            yield output
            sections = Sections.of(output.unseal())
        before = len(MAGIC)
        for number, stripe in enumerate(sections.footer.stripes):
            if stripe.offset != before:
                raise VerificationError(
                    self._name, "its new stripes do not follow each other", "report this with the version of pyarrow"
                )
            before += stripe_bytes(stripe)
            self._add(sections, number)

    def seal(
        self, schema: OrcType, options: OrcOptions, key_index: Sequence[Key], operation: int, calendar: int
    ) -> None:
        """Write the tail.

        :param key_index: the last key of every stripe.
        :param operation: of every row.
        """
        writer = common_writer(self._writers)
        footer: Any = message_class("Footer")()
        footer.headerLength, footer.contentLength = len(MAGIC), self._end
        footer.stripes.extend(self._stripes)
        declare_types(footer, schema)
        footer.numberOfRows = sum(stripe.numberOfRows for stripe in self._stripes)
        for name, value in acid_metadata(key_index, operation, footer.numberOfRows).items():
            footer.metadata.add(name=name, value=value)
        footer.statistics.extend(merge_statistics([found.colStats for found in self._statistics], footer.types))
        footer.rowIndexStride, footer.writer = options.row_index_stride, writer.writer
        if calendar:
            footer.calendar = calendar
        if writer.software:
            footer.softwareVersion = writer.software
        metadata: Any = message_class("Metadata")()
        metadata.stripeStats.extend(self._statistics)
        self._file.write(Sections(self._postscript(options, writer), footer, metadata).packed())

    def _postscript(self, options: OrcOptions, writer: OrcWriter) -> Any:
        postscript: Any = message_class("PostScript")()
        postscript.compression = int(CompressionKind[options.compression.upper()])
        # Of a buffer that holds any block of the file; how large each block is says the block itself.
        postscript.compressionBlockSize = self._block_bytes
        postscript.version.extend(FILE_VERSION)
        postscript.writerVersion = writer.version
        postscript.magic = MAGIC.decode()
        return postscript

    def _add(self, sections: Sections, stripe: int) -> None:
        place: Any = message_class("StripeInformation")()
        place.CopyFrom(sections.footer.stripes[stripe])
        place.offset = self._end
        self._end += stripe_bytes(place)
        self._stripes.append(place)
        self._statistics.append(sections.metadata.stripeStats[stripe])
        self._writers.add(OrcWriter.of(sections))
        self._block_bytes = max(self._block_bytes, sections.postscript.compressionBlockSize)

    def _append(self, reader: SourceReader, start: int, length: int) -> bytes | None:
        digest = hashlib.sha256() if self._takes_digests else None
        chunk_bytes = CHUNK_BYTES if self._takes_digests else CACHED_BYTES
        reader.file.seek(start)
        while length:
            with damage_named(reader.name):
                chunk = reader.file.read(min(length, chunk_bytes))
            if not chunk:
                raise CorruptFileError(reader.name, f"ends {length} bytes before the end of a stripe", DAMAGED)
            if digest is not None:
                digest.update(chunk)
            self._file.write(chunk)
            length -= len(chunk)
        return None if digest is None else digest.digest()


class _WithoutMagic:
    """Passes on what is written, but for the first bytes of an ORC file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = len(MAGIC)

    def write(self, data: bytes) -> int:
        """Pass on what is not part of the first bytes."""
        self._file.write(data[self._left :])
        self._left -= min(self._left, len(data))
        return len(data)
