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
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
}

_PACKAGE = "airflow_provider_acid.orc"

# message -> (field, number, type, label); label "*" is repeated, "packed" is a packed repetition. Enumerations are
# declared as uint32: the wire form is the same, and a value from a newer ORC does not get lost.
_MESSAGES: dict[str, tuple[tuple[str, int, str, str], ...]] = {
    "PostScript": (
        ("footerLength", 1, "uint64", ""),
        ("compression", 2, "uint32", ""),
        ("compressionBlockSize", 3, "uint64", ""),
        ("metadataLength", 5, "uint64", ""),
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
    "IntegerStatistics": (("minimum", 1, "sint64", ""), ("maximum", 2, "sint64", "")),
    "DateStatistics": (("minimum", 1, "sint32", ""), ("maximum", 2, "sint32", "")),
    "TimestampStatistics": (("minimumUtc", 3, "sint64", ""), ("maximumUtc", 4, "sint64", "")),
    "ColumnStatistics": (
        ("numberOfValues", 1, "uint64", ""),
        ("intStatistics", 2, "IntegerStatistics", ""),
        ("dateStatistics", 7, "DateStatistics", ""),
        ("timestampStatistics", 9, "TimestampStatistics", ""),
        ("hasNull", 10, "bool", ""),
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
        ("encryption", 10, "bytes", ""),
        ("calendar", 11, "uint32", ""),
    ),
    "StripeStatistics": (("colStats", 1, "ColumnStatistics", "*"),),
    "Metadata": (("stripeStats", 1, "StripeStatistics", "*"),),
    "StripeFooter": (("writerTimezone", 3, "string", ""),),
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
