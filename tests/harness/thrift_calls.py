"""Calls of the metastore that hmsclient does not have."""

from __future__ import annotations

from typing import Any

from hmsclient.genthrift.hive_metastore import ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TApplicationException, TMessageType, TType

from tests.harness import thrift_structs as structs

_DECLARED_ERRORS = {
    "create_table_req": (
        *(ttypes.AlreadyExistsException, ttypes.InvalidObjectException),
        *(ttypes.MetaException, ttypes.NoSuchObjectException),
    ),
    "allocate_table_write_ids": (ttypes.NoSuchTxnException, ttypes.TxnAbortedException, ttypes.MetaException),
    "get_valid_write_ids": (ttypes.NoSuchTxnException, ttypes.MetaException),
    "add_dynamic_partitions": (ttypes.NoSuchTxnException, ttypes.TxnAbortedException),
    "truncate_table": (ttypes.MetaException,),
    "truncate_table_req": (ttypes.MetaException,),
    "seed_write_id": (ttypes.MetaException,),
}


class ThriftCalls:
    """Asks over an open connection and reads the answer.

    :param protocol: of the connection.
    """

    def __init__(self, protocol: TBinaryProtocolAccelerated) -> None:
        self._protocol = protocol

    def call(self, method: str, request: structs.Struct, argument: str, answer: type[structs.Struct] | None) -> Any:
        """A call with one argument.

        :raises MetaException: or another of the metastore's declared errors, or TApplicationException.
        """
        arguments = _struct(structs.spec((1, TType.STRUCT, argument, structs.struct_of(type(request)))))
        setattr(arguments, argument, request)
        return self.call_with(method, arguments, answer)

    def call_with(self, method: str, arguments: structs.Struct, answer: type[structs.Struct] | None) -> Any:
        """A call with a struct of all its arguments; errors as of :meth:`call`."""
        self._protocol.writeMessageBegin(method, TMessageType.CALL, 0)
        arguments.write(self._protocol)
        self._protocol.writeMessageEnd()
        self._protocol.trans.flush()
        _, message_type, _ = self._protocol.readMessageBegin()
        result = TApplicationException() if message_type == TMessageType.EXCEPTION else _result(method, answer)
        result.read(self._protocol)
        self._protocol.readMessageEnd()
        if isinstance(result, TApplicationException):
            raise result
        for number in range(1, len(_DECLARED_ERRORS[method]) + 1):
            if (error := getattr(result, f"o{number}")) is not None:
                raise error
        return getattr(result, "success", None)


def _struct(thrift_spec: tuple[structs.Field, ...]) -> structs.Struct:
    struct: structs.Struct = type("Message", (structs.Struct,), {"thrift_spec": thrift_spec})()
    return struct


def _result(method: str, answer: type[structs.Struct] | None) -> structs.Struct:
    success = [] if answer is None else [(0, TType.STRUCT, "success", structs.struct_of(answer))]
    thrown = [
        (number, TType.STRUCT, f"o{number}", structs.struct_of(kind))
        for number, kind in enumerate(_DECLARED_ERRORS[method], start=1)
    ]
    return _struct(structs.spec(*success, *thrown))
