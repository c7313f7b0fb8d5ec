"""Thrift structs of Hive 4.0.1 that hmsclient (generated from Hive 2) lacks or has with other fields.

Field numbers as in ``hive_metastore.thrift`` of hive-standalone-metastore-common 4.0.1.
"""

from __future__ import annotations

from hmsclient.genthrift.hive_metastore import ttypes
from thrift.protocol.TBase import TBase
from thrift.Thrift import TType

Field = tuple[int, int, str, object, None] | None


class Struct(TBase):  # type: ignore[misc]
    """A struct described by its ``thrift_spec``; every field is None unless given."""

    thrift_spec: tuple[Field, ...] = ()

    def __init__(self, **values: object) -> None:
        for field in self.thrift_spec:
            if field is not None:
                setattr(self, field[2], values.pop(field[2], None))
        if values:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(values)}")


def spec(*fields: tuple[int, int, str] | tuple[int, int, str, object]) -> tuple[Field, ...]:
    """A ``thrift_spec``: each field stands at its own number, unused numbers are None."""
    by_number = {field[0]: field for field in fields}
    return tuple(
        _field(by_number[number]) if number in by_number else None for number in range(max(by_number, default=0) + 1)
    )


def _field(field: tuple[int, int, str] | tuple[int, int, str, object]) -> Field:
    number, kind, name, *detail = field
    default_detail = "UTF8" if kind == TType.STRING else None
    return (number, kind, name, detail[0] if detail else default_detail, None)


def struct_of(cls: type) -> list[object]:
    """The type argument of a field that holds another struct; its spec is looked up when first used."""
    return [cls, cls.thrift_spec]  # type: ignore[attr-defined]


STRINGS = (TType.STRING, "UTF8", False)
LONGS = (TType.I64, None, False)


class TxnToWriteId(Struct):
    thrift_spec = spec((1, TType.I64, "txnId"), (2, TType.I64, "writeId"))


class AllocateTableWriteIdsRequest(Struct):
    thrift_spec = spec((1, TType.STRING, "dbName"), (2, TType.STRING, "tableName"), (3, TType.LIST, "txnIds", LONGS))


class AllocateTableWriteIdsResponse(Struct):
    thrift_spec = spec((1, TType.LIST, "txnToWriteIds", (TType.STRUCT, struct_of(TxnToWriteId), False)))


class SeedTableWriteIdsRequest(Struct):
    thrift_spec = spec((1, TType.STRING, "dbName"), (2, TType.STRING, "tableName"), (3, TType.I64, "seedWriteId"))


class GetValidWriteIdsRequest(Struct):
    thrift_spec = spec((1, TType.LIST, "fullTableNames", STRINGS), (2, TType.STRING, "validTxnList"))


class TableValidWriteIds(Struct):
    thrift_spec = spec(
        (1, TType.STRING, "fullTableName"),
        (2, TType.I64, "writeIdHighWaterMark"),
        (3, TType.LIST, "invalidWriteIds", LONGS),
        (4, TType.I64, "minOpenWriteId"),
        (5, TType.STRING, "abortedBits", "BINARY"),
    )


class GetValidWriteIdsResponse(Struct):
    thrift_spec = spec((1, TType.LIST, "tblValidWriteIds", (TType.STRUCT, struct_of(TableValidWriteIds), False)))


class AddDynamicPartitions(Struct):
    thrift_spec = spec(
        (1, TType.I64, "txnid"),
        (2, TType.I64, "writeid"),
        (3, TType.STRING, "dbname"),
        (4, TType.STRING, "tablename"),
        (5, TType.LIST, "partitionnames", STRINGS),
        (6, TType.I32, "operationType"),
    )


class CreateTableRequest(Struct):
    thrift_spec = spec(
        (1, TType.STRUCT, "table", struct_of(ttypes.Table)),
        (9, TType.LIST, "processorCapabilities", STRINGS),
        (10, TType.STRING, "processorIdentifier"),
    )


class TruncateTable(Struct):
    """The arguments of Hive 3's ``truncate_table``."""

    thrift_spec = spec(
        (1, TType.STRING, "dbName"), (2, TType.STRING, "tableName"), (3, TType.LIST, "partNames", STRINGS)
    )


class TruncateTableRequest(Struct):
    thrift_spec = spec(
        (1, TType.STRING, "dbName"),
        (2, TType.STRING, "tableName"),
        (3, TType.LIST, "partNames", STRINGS),
        (4, TType.I64, "writeId"),
        (5, TType.STRING, "validWriteIdList"),
    )
