"""What a compaction replaced, as a list of names in its staging directory, for the Cleaner of Hive 3.

Names of Hive 3 do not say which compaction made a directory. A later compaction's result would therefore count in an
earlier one's cleaning, and what it merged would go while readers that began between the two still need it. So the
Worker notes before it publishes what its own result replaces, and the Cleaner deletes nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.compaction.publish.staging import read_note
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.plan.exchange import REPLACED_FILE

_FORMAT_VERSION = 1


def write_replaced(storage: Storage, staging: str, names: Iterable[str]) -> None:
    """Note what a compaction replaces, before it is published; replaces the note of a predecessor.

    :param staging: the attempt's staging directory, which exists.
    :param names: of the merged directories and original files, and of the ones that were obsolete or wholly aborted
        in the compaction's snapshot; relative to the partition, for files in original directories the directory's.
    :raises StorageError: it cannot be written.
    """
    path = f"{staging}/{REPLACED_FILE}"
    storage.delete([path])
    document = json.dumps({"format_version": _FORMAT_VERSION, "names": sorted(set(names))})
    storage.write_new(path, document.encode())


def read_replaced(storage: Storage, staging: str) -> frozenset[str] | None:
    """What was noted in a staging directory.

    :returns: None where nothing is, or nothing that can be understood: nothing may be deleted then.
    :raises StorageError: it exists but cannot be read now.
    """
    return read_note(storage, f"{staging}/{REPLACED_FILE}", replaced_names)


def replaced_names(document: bytes) -> frozenset[str]:
    """What a note says.

    :raises ConfigurationError: it is none of this version.
    """
    data = fields.versioned(document, "list of replaced directories", _FORMAT_VERSION)
    return frozenset(fields.texts(data, "names"))
