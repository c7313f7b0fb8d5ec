"""Thrift's structs and calls without generated code, and what an answer must hold to be taken for one.

hmsclient's generated classes replace what is no UTF-8, and take an answer without its fields for a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from thrift.protocol.TBase import TBase, TFrozenBase
from thrift.protocol.TProtocol import TProtocolBase
from thrift.Thrift import TType
from thrift.transport.TTransport import CReadableTransport

FieldType = tuple[int, object]
"""Thrift's type number and what its protocols need to know beyond it."""

FieldSpec = tuple[int, int, str, object, None]

Spec = tuple[FieldSpec | None, ...]

BOOL: FieldType = (TType.BOOL, None)
I16: FieldType = (TType.I16, None)
I32: FieldType = (TType.I32, None)
I64: FieldType = (TType.I64, None)
TEXT: FieldType = (TType.STRING, "UTF8")
BINARY: FieldType = (TType.STRING, "BINARY")
TEXT_MAP: FieldType = (TType.MAP, (TType.STRING, "UTF8", TType.STRING, "UTF8", False))


class IncompleteAnswerError(Exception):
    """An answer without a value that the call promises; never leaves this package."""


def list_of(item: FieldType) -> FieldType:
    """A list of ``item``."""
    return TType.LIST, (*item, False)


def struct_of(struct: type[TBase]) -> FieldType:
    """A nested struct."""
    return TType.STRUCT, [struct, struct.thrift_spec]


def spec(*fields: tuple[int, str, FieldType]) -> Spec:
    """A ``thrift_spec``, indexed by field number, from ``(number, name, type)``."""
    by_number = {number: (number, type[0], name, type[1], None) for number, name, type in fields}
    return tuple(by_number.get(number) for number in range(max(by_number, default=-1) + 1))


class Struct(TFrozenBase):  # type: ignore[misc]
    """A Thrift struct whose fields are named by its ``thrift_spec``; those not given are None.

    Texts are read as bytes and decoded here: Thrift's own decoder puts replacement characters for what is no UTF-8.

    :raises IncompleteAnswerError: a required field is missing.
    """

    thrift_spec: ClassVar[Spec] = ()
    required: ClassVar[tuple[str, ...]] = ()
    """Fields without which nobody can use the struct; an array of empty structs would cost a byte each on the wire."""

    received_spec: ClassVar[Spec] = ()
    _decoders: ClassVar[dict[str, Callable[[object], object] | None]] = {}

    def __init_subclass__(cls) -> None:
        fields = [field for field in cls.thrift_spec if field is not None]
        cls.received_spec = tuple(field and (*field[:3], _as_bytes(field[3]), None) for field in cls.thrift_spec)
        cls._decoders = {field[2]: _decoder((field[1], field[3])) for field in fields}
        for field in fields:
            setattr(cls, field[2], None)

    def __init__(self, **values: object) -> None:
        decoders = self._decoders
        for name, value in values.items():
            if name not in decoders:
                raise TypeError(f"{type(self).__name__} has no field {name}")
            decode = decoders[name]
            if decode is not None and value is not None:
                values[name] = decode(value)
        for name in self.required:
            if values.get(name) is None:
                raise IncompleteAnswerError(f"{type(self).__name__} without {name}")
        self.__dict__.update(values)

    @classmethod
    def read(cls, protocol: TProtocolBase) -> Struct:
        """The struct that a protocol reads next, by Thrift's C code where there is any."""
        received: Struct
        if protocol._fast_decode is not None and isinstance(protocol.trans, CReadableTransport):
            received = protocol._fast_decode(None, protocol, [cls, cls.received_spec])
        else:
            received = protocol.readStruct(cls, cls.received_spec, True)
        return received


def _as_bytes(details: object) -> object:
    """What protocols need to know of a type, with texts left as they are on the wire."""
    if details == "UTF8":
        return "BINARY"
    if isinstance(details, list):
        struct = details[0]
        return [struct, struct.received_spec if issubclass(struct, Struct) else details[1]]
    return tuple(map(_as_bytes, details)) if isinstance(details, tuple) else details


def _text(value: object) -> object:
    return value.decode() if isinstance(value, bytes) else value


def _texts(values: object) -> object:
    assert isinstance(values, list | tuple)
    return [_text(value) for value in values]


def _text_map(values: object) -> object:
    assert isinstance(values, dict)
    return {_text(key): _text(value) for key, value in values.items()}


def _decoder(type: FieldType) -> Callable[[object], object] | None:
    """Makes texts of a field's bytes; None where there are none, or a nested struct does it."""
    if type == TEXT:
        return _text
    if type == list_of(TEXT):
        return _texts
    return _text_map if type == TEXT_MAP else None


@dataclass(frozen=True)
class Method:
    """A call of the metastore's Thrift service.

    :param arguments: types of the arguments, numbered from 1.
    :param result: type of the answer; None for a void call.
    :param errors: declared exceptions, numbered from 1.
    """

    name: str
    arguments: tuple[FieldType, ...] = ()
    result: FieldType | None = None
    errors: tuple[type[TBase], ...] = ()

    @cached_property
    def arguments_struct(self) -> type[Struct]:
        """The message that carries the arguments, fields ``argument_1`` and on."""
        return _message(*((number, f"argument_{number}", type) for number, type in enumerate(self.arguments, 1)))

    @cached_property
    def answer_struct(self) -> type[Struct]:
        """The message that carries ``result`` or one of ``error_1`` and on."""
        errors = [(number, f"error_{number}", struct_of(error)) for number, error in enumerate(self.errors, 1)]
        return _message(*([(0, "result", self.result)] if self.result else []), *errors)


def _message(*fields: tuple[int, str, FieldType]) -> type[Struct]:
    return type("Message", (Struct,), {"thrift_spec": spec(*fields)})
