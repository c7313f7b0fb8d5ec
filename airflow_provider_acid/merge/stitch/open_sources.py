"""The files of which a file is put together, one of them open at a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from itertools import accumulate
from types import TracebackType

from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.merge.files.source_files import SourceReader, open_source
from airflow_provider_acid.merge.orc.schema import OrcType
from airflow_provider_acid.merge.stitch.stripe_donors import Donor, same_donor
from airflow_provider_acid.merge.stitch.stripe_survey import SurveyedFile
from airflow_provider_acid.plan.plan import OrcOptions, SourceFile


class OpenSources(AbstractContextManager["OpenSources"]):
    """Opens the files by their numbers; cheap where those ascend.

    :param files: what is known of each of the sources.
    :param schema: of the output.
    :param options: of the output.
    """

    def __init__(
        self,
        storage: Storage,
        sources: Sequence[SourceFile],
        files: Sequence[SurveyedFile],
        schema: OrcType,
        options: OrcOptions,
    ) -> None:
        self._storage = storage
        self._sources = sources
        self._files = files
        self._schema = schema
        self._options = options
        self._starts = [0, *accumulate(source.size_bytes for source in sources)]
        self._open = ExitStack()
        self._number: int | None = None
        self._reader: SourceReader | None = None
        self._donor: Donor | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()

    def reader(self, number: int) -> SourceReader:
        """The file of this number, which is the one that was surveyed.

        :raises CorruptFileError: it is another one now, or damaged.
        """
        if number != self._number:
            self._change_to(number)
        assert self._reader is not None
        return self._reader

    def donor(self, number: int) -> Donor:
        """The same file, one of which stripes may be copied.

        :raises CorruptFileError: as :meth:`reader`.
        """
        self.reader(number)
        assert self._donor is not None
        return self._donor

    def path(self, number: int) -> str:
        """Where the file lies, below the storage's location."""
        return self._sources[number].path

    def bytes_before(self, number: int) -> int:
        """Bytes of the files before this one."""
        return self._starts[number]

    def _change_to(self, number: int) -> None:
        self._open.close()
        self._number, self._donor = number, None
        known = self._files[number]
        self._reader = self._open.enter_context(open_source(self._storage, self._sources[number], known.first_row_id))
        if known.tail_digest is not None and self._reader is not None:
            self._donor = same_donor(self._reader, self._schema, self._options, known.tail_digest)
