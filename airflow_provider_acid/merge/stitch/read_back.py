"""The stripes of an output's rows, read back the way they were written: decoded, or compared with their sources."""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from airflow_provider_acid.exceptions import VerificationError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.merge.files.file_copy import digest_of, holds_same
from airflow_provider_acid.merge.files.source_files import KEY_FIELDS, SourceReader, damage_named
from airflow_provider_acid.merge.files.verify import REPORT
from airflow_provider_acid.merge.keys.acid_keys import KeyRange, key_range_with
from airflow_provider_acid.merge.keys.key_filter import KeyFilter
from airflow_provider_acid.merge.orc.codec import CodecError
from airflow_provider_acid.merge.orc.sections import Sections
from airflow_provider_acid.merge.orc.stripe_description import describe, packed_footer
from airflow_provider_acid.merge.orc.tail import read_tail_section
from airflow_provider_acid.merge.rows.exact_rows import exact_reader
from airflow_provider_acid.merge.stitch.stripe_segments import SurveyedStripe


@dataclass(frozen=True)
class CopiedStripe:
    """A stripe that was copied as bytes.

    :param path: of its source, below the storage's location.
    :param offset: of its first byte there.
    :param digest: SHA-256 of its bytes, taken where they came from; None where its source can as well be read again.
    :param surveyed: what a look at its keys found before it was copied; None where its keys are to be read again.
    """

    path: str
    offset: int
    digest: bytes | None
    surveyed: SurveyedStripe | None


class RowsCheck:
    """Checks the stripes of one file, in their order.

    :param storage: of the file and of the sources of what was copied.
    :param filter_again: a new filter of the same bucket; it must find nothing to drop, and the keys in order.
    :param zone: the zone in which the file counts timestamps; None where Arrow holds every value and may read it.
    :param copied: by their numbers in the file.
    """

    def __init__(
        self, storage: Storage, filter_again: KeyFilter, zone: str | None, copied: Mapping[int, CopiedStripe]
    ) -> None:
        self._storage = storage
        self._filter_again = filter_again
        self._zone = zone
        self._copied = copied
        self._sections: Sections | None = None

    def __call__(self, reader: SourceReader, stripe: int) -> KeyRange | None:
        """Check one stripe.

        :raises VerificationError: it holds rows that should be gone, cannot be read whole, or is not its source's.
        """
        copied = self._copied.get(stripe)
        if copied is None:
            return self._check_rows(reader, stripe)
        self._check_bytes(reader, stripe, copied)
        if copied.surveyed is None:
            return self._check_keys(reader, stripe)
        self._check_description(reader, stripe, copied.surveyed)
        keys = KeyRange(copied.surveyed.first_key, copied.surveyed.last_key)
        self._filter_again.pass_over(reader.name, keys)
        return keys

    def _check_rows(self, reader: SourceReader, stripe: int) -> KeyRange | None:
        if self._zone is None:
            return self._check_keys(reader, stripe, None)
        keys = self._check_keys(reader, stripe)
        reader.check_stripe(stripe)
        with damage_named(reader.name):
            found = sum(1 for _ in exact_reader(reader, zoneinfo.ZoneInfo(self._zone)).read_stripe(stripe))
        rows = reader.tail.stripes[stripe].rows
        if found != rows:
            raise VerificationError(reader.name, f"has {found} rows in stripe {stripe}, not {rows}", REPORT)
        return keys

    def _check_keys(self, reader: SourceReader, stripe: int, fields: list[str] | None = KEY_FIELDS) -> KeyRange | None:
        """Read the fields, None for all, and look at the keys."""
        keys: KeyRange | None = None
        for batch in reader.read_batches(stripe, fields):
            kept = self._filter_again.apply(reader.name, batch)
            if kept.rows_aborted or kept.rows_deleted:
                raise VerificationError(
                    reader.name, f"holds {kept.rows_aborted} aborted and {kept.rows_deleted} deleted rows", REPORT
                )
            keys = key_range_with(keys, batch)
        return keys

    def _check_bytes(self, reader: SourceReader, stripe: int, copied: CopiedStripe) -> None:
        place = reader.tail.stripes[stripe]
        reader.file.seek(place.offset)
        if copied.digest is not None:
            is_same = digest_of(reader.file, place.size_bytes) == copied.digest
        else:
            with self._storage.open_input(copied.path) as source:
                source.seek(copied.offset)
                is_same = holds_same(reader.file, source, place.size_bytes)
        if not is_same:
            raise VerificationError(reader.name, f"its stripe {stripe} is not its source's bytes", REPORT)

    def _check_description(self, reader: SourceReader, stripe: int, surveyed: SurveyedStripe) -> None:
        """What its keys were found to be is true of the stripe that its source describes so, and of no other."""
        sections, known = self._tail_of(reader), surveyed.description
        found = describe(sections, stripe, packed_footer(reader.file, sections, stripe))
        if known is None or found.digest != known.digest or found.block_bytes < known.block_bytes:
            raise VerificationError(reader.name, f"its stripe {stripe} is not the one that was looked at", REPORT)

    def _tail_of(self, reader: SourceReader) -> Sections:
        if self._sections is None:
            try:
                self._sections = Sections.of(read_tail_section(reader.file, reader.file.seek(0, 2)))
            except (CodecError, DecodeError, ValueError) as error:
                raise VerificationError(reader.name, f"cannot be read back ({error})", REPORT) from error
        return self._sections
