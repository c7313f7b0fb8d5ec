"""One call over a Thrift protocol: the request, and the answer to it and to nothing else."""

from __future__ import annotations

import struct
from typing import Any

from thrift.protocol.TProtocol import TProtocolBase, TProtocolException
from thrift.Thrift import TApplicationException, TException, TMessageType

from airflow_provider_acid.metastore.thrift.wire import IncompleteAnswerError, Method, Struct

_UNREADABLE = (
    IncompleteAnswerError,
    ValueError,
    TypeError,
    ArithmeticError,
    LookupError,
    AttributeError,
    MemoryError,
    RecursionError,
    SystemError,
    struct.error,
)
"""What Thrift's decoders raise at bytes that are no answer, or one over their limits; errors of the stream apart."""

_SHOWN_NAME = 80


class UnreadableAnswerError(Exception):
    """An answer arrived and says nothing that can be used; the connection must not be used again.

    :param remedy: what the reader of the message can do.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.remedy = remedy


def ask(protocol: TProtocolBase, number: int, method: Method, arguments: tuple[object, ...]) -> Any:
    """Send a call and wait for its answer: its result, or an empty struct where it is void.

    :param number: the call's sequence id; another one on the same connection for every call.
    :raises thrift.Thrift.TException: what the server, the protocol or the transport reports.
    :raises UnreadableAnswerError: the answer cannot be used.
    """
    names = [f"argument_{position}" for position in range(1, len(arguments) + 1)]
    protocol.writeMessageBegin(method.name, TMessageType.CALL, number)
    method.arguments_struct(**dict(zip(names, arguments, strict=True))).write(protocol)
    protocol.writeMessageEnd()
    protocol.trans.flush()
    try:
        return _answer(protocol, number, method)
    except UnicodeDecodeError as error:
        raise UnreadableAnswerError(
            f"{method.name} was answered with text that is not UTF-8 ({error.reason})",
            "correct the name in the metastore",
        ) from error
    except _UNREADABLE as error:
        raise UnreadableAnswerError(
            f"{method.name} was answered with what is no answer to it ({type(error).__name__}: {error})",
            "look whether this port is a Hive metastore's, and at its log",
        ) from error


def _answer(protocol: TProtocolBase, number: int, method: Method) -> Any:
    name, message_type, answered = protocol.readMessageBegin()
    is_answer = message_type in (TMessageType.REPLY, TMessageType.EXCEPTION)
    if not is_answer or (name, answered) != (method.name, number):
        raise TProtocolException(
            TProtocolException.INVALID_DATA,
            f"call {number} of {method.name} was answered by message {answered} of type {message_type} "
            f"about {name[:_SHOWN_NAME]!r}",
        )
    if message_type == TMessageType.EXCEPTION:
        failure = TApplicationException()
        failure.read(protocol)
        raise failure
    answer = method.answer_struct.read(protocol)
    protocol.readMessageEnd()
    return _result(method, answer)


def _result(method: Method, answer: Struct) -> Any:
    for number in range(1, len(method.errors) + 1):
        error: TException | None = getattr(answer, f"error_{number}")
        if error is not None:
            raise error
    if method.result is None:
        return answer
    if answer.result is None:
        raise IncompleteAnswerError("it has neither a result nor an error")
    return answer.result
