"""What both ways of making a bucket's file of rows have in common: decoding all of it, and copying stripes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_provider_acid.acid.names import bucket_file_name
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.merge.files.answers import Merged, Progress
from airflow_provider_acid.merge.files.misleading_limits import without_misleading_limits
from airflow_provider_acid.merge.files.sealed_output import SealedOutput
from airflow_provider_acid.merge.files.verify import Expected, verify_output
from airflow_provider_acid.merge.keys.acid_keys import INSERT, Key, Visibility
from airflow_provider_acid.merge.keys.deleted_keys import DeletedKeys
from airflow_provider_acid.merge.keys.key_filter import KeyFilter
from airflow_provider_acid.merge.orc.output_options import bloom_filter_ids, cut_text_ids
from airflow_provider_acid.merge.orc.schema import OrcType, as_written
from airflow_provider_acid.merge.rows.arrow_rows import ArrowRows
from airflow_provider_acid.merge.rows.exact_rows import ExactRows
from airflow_provider_acid.merge.rows.merge_sources import Sources, output_calendar
from airflow_provider_acid.merge.stitch.read_back import CopiedStripe, RowsCheck
from airflow_provider_acid.plan.plan import BucketPlan, OrcOptions
from airflow_provider_acid.plan.result import OutputFile

Way = type[ArrowRows] | type[ExactRows]


@dataclass(frozen=True)
class Written:
    """A file that was written, and is yet to be verified.

    :param last_keys: of every stripe.
    :param copied: every stripe that was copied as bytes, by its number.
    """

    last_keys: tuple[Key, ...]
    rows_aborted: int
    rows_deleted: int
    copied: Mapping[int, CopiedStripe] = field(default_factory=dict)


@dataclass(frozen=True)
class RowsOutput:
    """One bucket's file of rows.

    :param path: of the attempt.
    """

    storage: Storage
    options: OrcOptions
    bucket: BucketPlan
    path: str
    sources: Sources
    visibility: Visibility
    deleted: DeletedKeys
    progress: Progress

    @property
    def name(self) -> str:
        """How errors call it."""
        return join(self.storage.location, self.path)

    @property
    def schema(self) -> OrcType:
        """Its type."""
        return self.sources.schema

    @property
    def calendar(self) -> int:
        """What it says of its dates."""
        return output_calendar(self.sources.calendars)

    def key_filter(self) -> KeyFilter:
        """A new filter of the bucket's rows."""
        return KeyFilter(self.bucket.bucket, self.visibility, self.deleted)

    def writer(self, way: Way, output: SealedOutput) -> ArrowRows | ExactRows:
        """A writer of rows, one of the two ways."""
        written, bloom = as_written(self.schema), bloom_filter_ids(self.schema, self.options.bloom_filter_columns)
        if issubclass(way, ExactRows):
            return ExactRows(self.name, output, written, self.options, bloom, self.sources.zone)
        return ArrowRows(self.name, output, written, self.options, bloom)

    def nothing_left(self, rows_aborted: int, rows_deleted: int) -> Merged:
        """The outcome where no row stays, and no file is written."""
        return Merged(None, self._figures(0, Written((), rows_aborted, rows_deleted), 0))

    def verified(self, way: Way, written: Written) -> Merged:
        """Verify the written file.

        :param way: in which its rows were written.
        :raises VerificationError: it does not hold what it must.
        """
        dropped = written.rows_aborted + written.rows_deleted
        expected = Expected(
            schema=self.schema,
            operation=INSERT,
            rows=self.sources.rows - dropped,
            # Statistics do not say which values went with the rows that were dropped.
            values=None if dropped else self.sources.values,
            last_keys=written.last_keys,
            calendar=self.calendar,
        )
        zone = None if way is ArrowRows else self.sources.zone
        check = RowsCheck(self.storage, self.key_filter(), zone, written.copied)
        # Of texts that are longer than the table's, readers cut values, not limits: 'abcdef' is read as 'abc', which
        # lies below it. So row groups that a merge makes have none there; those of copied stripes hide nothing new.
        cut = cut_text_ids(self.schema, self.sources.converted)
        path = without_misleading_limits(self.storage, self.path, written.copied, cut, self.sources.for_hive_3)
        size = verify_output(self.storage, path, self.options, expected, check)
        return Merged(path, self._figures(size, written, expected.rows))

    def _figures(self, size: int, written: Written, rows_out: int) -> OutputFile:
        return OutputFile(
            output=self.bucket.output,
            bucket=self.bucket.bucket,
            name=bucket_file_name(self.bucket.bucket) if rows_out else None,
            size_bytes=size,
            stripes=len(written.last_keys),
            rows_in=self.sources.rows,
            rows_aborted=written.rows_aborted,
            rows_deleted=written.rows_deleted,
            rows_repeated=0,
            rows_out=rows_out,
        )
