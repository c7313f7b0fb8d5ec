"""The part of ORC's protobuf messages that a compaction reads or changes.

Fields that are not declared here survive a read and write unchanged: protobuf keeps what it does not know. The
numbers come from Apache ORC's ``orc_proto.proto``.
"""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

_KINDS = {
    "uint64": descriptor_pb2.FieldDescriptorProto.TYPE_UINT64,
    "uint32": descriptor_pb2.FieldDescriptorProto.TYPE_UINT32,
    "sint64": descriptor_pb2.FieldDescriptorProto.TYPE_SINT64,
    "sint32": descriptor_pb2.FieldDescriptorProto.TYPE_SINT32,
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    "double": descriptor_pb2.FieldDescriptorProto.TYPE_DOUBLE,
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
}

_PACKAGE = "airflow_provider_acid.orc"

# message -> (field, number, type, label); label "*" is repeated, "packed" is a packed repetition. Enumerations are
# declared as uint32: the wire form is the same, and a value from a newer ORC does not get lost. Limits of strings are
# declared as bytes: ORC orders them by their bytes, and a writer may have cut one in the middle of a character.
_MESSAGES: dict[str, tuple[tuple[str, int, str, str], ...]] = {
    "PostScript": (
        ("footerLength", 1, "uint64", ""),
        ("compression", 2, "uint32", ""),
        ("compressionBlockSize", 3, "uint64", ""),
        ("version", 4, "uint32", "packed"),
        ("metadataLength", 5, "uint64", ""),
        ("writerVersion", 6, "uint32", ""),
        ("magic", 8000, "string", ""),
    ),
    "StripeInformation": (
        ("offset", 1, "uint64", ""),
        ("indexLength", 2, "uint64", ""),
        ("dataLength", 3, "uint64", ""),
        ("footerLength", 4, "uint64", ""),
        ("numberOfRows", 5, "uint64", ""),
    ),
    "Type": (
        ("kind", 1, "uint32", ""),
        ("subtypes", 2, "uint32", "packed"),
        ("fieldNames", 3, "string", "*"),
        ("maximumLength", 4, "uint32", ""),
        ("precision", 5, "uint32", ""),
        ("scale", 6, "uint32", ""),
    ),
    "UserMetadataItem": (("name", 1, "string", ""), ("value", 2, "bytes", "")),
    "IntegerStatistics": (("minimum", 1, "sint64", ""), ("maximum", 2, "sint64", ""), ("sum", 3, "sint64", "")),
    "DoubleStatistics": (("minimum", 1, "double", ""), ("maximum", 2, "double", ""), ("sum", 3, "double", "")),
    "StringStatistics": (
        ("minimum", 1, "bytes", ""),
        ("maximum", 2, "bytes", ""),
        ("sum", 3, "sint64", ""),
        ("lowerBound", 4, "bytes", ""),
        ("upperBound", 5, "bytes", ""),
    ),
    "BucketStatistics": (("count", 1, "uint64", "packed"),),
    "DecimalStatistics": (("minimum", 1, "string", ""), ("maximum", 2, "string", ""), ("sum", 3, "string", "")),
    "DateStatistics": (("minimum", 1, "sint32", ""), ("maximum", 2, "sint32", "")),
    "BinaryStatistics": (("sum", 1, "sint64", ""),),
    "TimestampStatistics": (
        ("minimum", 1, "sint64", ""),
        ("maximum", 2, "sint64", ""),
        ("minimumUtc", 3, "sint64", ""),
        ("maximumUtc", 4, "sint64", ""),
        ("minimumNanos", 5, "int32", ""),
        ("maximumNanos", 6, "int32", ""),
    ),
    "CollectionStatistics": (
        ("minChildren", 1, "uint64", ""),
        ("maxChildren", 2, "uint64", ""),
        ("totalChildren", 3, "uint64", ""),
    ),
    "ColumnStatistics": (
        ("numberOfValues", 1, "uint64", ""),
        ("intStatistics", 2, "IntegerStatistics", ""),
        ("doubleStatistics", 3, "DoubleStatistics", ""),
        ("stringStatistics", 4, "StringStatistics", ""),
        ("bucketStatistics", 5, "BucketStatistics", ""),
        ("decimalStatistics", 6, "DecimalStatistics", ""),
        ("dateStatistics", 7, "DateStatistics", ""),
        ("binaryStatistics", 8, "BinaryStatistics", ""),
        ("timestampStatistics", 9, "TimestampStatistics", ""),
        ("hasNull", 10, "bool", ""),
        ("bytesOnDisk", 11, "uint64", ""),
        ("collectionStatistics", 12, "CollectionStatistics", ""),
    ),
    "Footer": (
        ("headerLength", 1, "uint64", ""),
        ("contentLength", 2, "uint64", ""),
        ("stripes", 3, "StripeInformation", "*"),
        ("types", 4, "Type", "*"),
        ("metadata", 5, "UserMetadataItem", "*"),
        ("numberOfRows", 6, "uint64", ""),
        ("statistics", 7, "ColumnStatistics", "*"),
        ("rowIndexStride", 8, "uint32", ""),
        ("writer", 9, "uint32", ""),
        ("encryption", 10, "bytes", ""),
        ("calendar", 11, "uint32", ""),
        ("softwareVersion", 12, "string", ""),
    ),
    "StripeStatistics": (("colStats", 1, "ColumnStatistics", "*"),),
    "Metadata": (("stripeStats", 1, "StripeStatistics", "*"),),
    "Stream": (("kind", 1, "uint32", ""), ("column", 2, "uint32", ""), ("length", 3, "uint64", "")),
    "StripeFooter": (
        ("streams", 1, "Stream", "*"),
        ("columns", 2, "bytes", "*"),
        ("writerTimezone", 3, "string", ""),
    ),
    "ColumnEncoding": (("kind", 1, "uint32", ""), ("dictionarySize", 2, "uint32", "")),
    # The same with the entries unread, to count them first.
    "FooterParts": (
        ("stripes", 3, "bytes", "*"),
        ("types", 4, "bytes", "*"),
        ("metadata", 5, "bytes", "*"),
        ("statistics", 7, "bytes", "*"),
    ),
    "StripeStatisticsParts": (("colStats", 1, "bytes", "*"),),
    "MetadataParts": (("stripeStats", 1, "bytes", "*"),),
    "StripeFooterParts": (("streams", 1, "bytes", "*"),),
    "RowIndexEntry": (("positions", 1, "uint64", "packed"), ("statistics", 2, "ColumnStatistics", "")),
    "RowIndex": (("entry", 1, "RowIndexEntry", "*"),),
}


def _declare() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="airflow_provider_acid/orc.proto", package=_PACKAGE, syntax="proto2")
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for name, number, kind, label in fields:
            field = message.field.add(name=name, number=number)
            field.label = field.LABEL_REPEATED if label else field.LABEL_OPTIONAL
            if kind in _KINDS:
                field.type = _KINDS[kind]
            else:
                field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            field.options.packed = label == "packed"
    # A pool of its own, so that other packages that bring ORC's full declaration do not collide with this one.
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _declare()


def message_class(name: str) -> type[Message]:
    """The protobuf class of one of ORC's messages, e.g. ``Footer``."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
