"""How a table wants its ORC files written, from its properties."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.plan.partition import CompactionPolicy
from airflow_provider_acid.plan.plan import OrcOptions

_COMPRESSIONS = ("none", "zlib", "snappy", "lz4", "zstd")


def orc_options(
    table_parameters: Mapping[str, str],
    policy: CompactionPolicy = CompactionPolicy(),  # noqa: B008 - immutable
) -> OrcOptions:
    """How the table wants its ORC files written, and which stripes the site wants copied.

    :raises UnsupportedTableError: a compression or a number that cannot be honoured.
    """
    defaults = OrcOptions()
    compression = table_parameters.get("orc.compress", defaults.compression).strip().lower()
    if compression not in _COMPRESSIONS:
        raise UnsupportedTableError(
            f"table property orc.compress={table_parameters['orc.compress']}",
            f"names a compression that is not one of {', '.join(_COMPRESSIONS)}",
            "set the table property to one of them",
        )
    indexed = table_parameters.get("orc.create.index", "true").strip().lower() != "false"
    stride = _bytes_or_rows(table_parameters, "orc.row.index.stride", defaults.row_index_stride, minimum=0)
    return OrcOptions(
        compression=compression,
        compression_block_bytes=_bytes_or_rows(table_parameters, "orc.compress.size", defaults.compression_block_bytes),
        stripe_bytes=_bytes_or_rows(table_parameters, "orc.stripe.size", defaults.stripe_bytes),
        row_index_stride=stride if indexed else 0,
        bloom_filter_columns=tuple(
            name.strip() for name in table_parameters.get("orc.bloom.filter.columns", "").split(",") if name.strip()
        ),
        stripe_copy=policy.stripe_copy,
        small_stripe_share=policy.small_stripe_share,
        slice_bytes=policy.slice_bytes,
    )


def _bytes_or_rows(table_parameters: Mapping[str, str], name: str, default: int, minimum: int = 1) -> int:
    text = table_parameters.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        value = minimum - 1
    if value < minimum:
        raise UnsupportedTableError(
            f"table property {name}={text!r}", f"is no whole number from {minimum} on", "correct it or remove it"
        )
    return value
