"""One connection to a metastore: addresses, threads, reconnects, and errors in this package's words."""

from __future__ import annotations

import getpass
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

from hmsclient import HMSClient
from hmsclient.genthrift.hive_metastore import ttypes
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException, TMessageType
from thrift.transport.TTransport import TTransportException

from airflow_provider_acid.exceptions import (
    AcidError,
    ConfigurationError,
    MetastoreError,
    MetastoreUnavailableError,
    MetastoreVersionError,
    ObjectNotFoundError,
    OwnershipLostError,
)
from airflow_provider_acid.metastore.structs import Method, Struct
from airflow_provider_acid.metastore.transport import (
    MetastoreAddress,
    PlainTransportFactory,
    Transport,
    TransportFactory,
)

T = TypeVar("T")
Self = TypeVar("Self", bound="MetastoreConnection")

DEFAULT_TIMEOUT_SECONDS = 60.0

ROUNDS_OVER_ADDRESSES = 2
"""How often a call that may be repeated is tried at each address before the metastore counts as unreachable."""

_CONNECTION_ERRORS = (TTransportException, TProtocolException, OSError, EOFError)
_UNKNOWN_CALLS = (TApplicationException.UNKNOWN_METHOD, TApplicationException.WRONG_METHOD_NAME)
_NOT_FOUND = (
    ttypes.NoSuchObjectException,
    ttypes.UnknownDBException,
    ttypes.UnknownTableException,
    ttypes.UnknownPartitionException,
)
_OWNERSHIP_LOST = (ttypes.NoSuchTxnException, ttypes.TxnAbortedException, ttypes.NoSuchLockException)


class ThriftClient(HMSClient):  # type: ignore[misc]
    """hmsclient, able to send any :class:`Method`."""

    def invoke(self, method: Method, *arguments: object) -> Struct:
        """Send ``method`` and wait for its answer; an empty struct where it is void.

        :raises thrift.Thrift.TException: what the server, the protocol or the transport reports.
        """
        names = [f"argument_{number}" for number in range(1, len(arguments) + 1)]
        self._oprot.writeMessageBegin(method.name, TMessageType.CALL, self._seqid)
        method.arguments_struct(**dict(zip(names, arguments, strict=True))).write(self._oprot)
        self._oprot.writeMessageEnd()
        self._oprot.trans.flush()
        _, message_type, _ = self._iprot.readMessageBegin()
        failed = message_type == TMessageType.EXCEPTION
        answer = TApplicationException() if failed else method.answer_struct()
        answer.read(self._iprot)
        self._iprot.readMessageEnd()
        if failed:
            raise answer
        return _result(method, answer)


def _result(method: Method, answer: Struct) -> Struct:
    for number in range(1, len(method.errors) + 1):
        error = getattr(answer, f"error_{number}")
        if error is not None:
            raise error
    if method.result is None:
        return answer
    result: Struct | None = answer.result
    if result is None:
        raise TApplicationException(TApplicationException.MISSING_RESULT, f"{method.name} answered nothing")
    return result


class MetastoreConnection:
    """A connection to the first of several metastores that answers.

    Belongs to the thread that uses it first: a Thrift stream shared by two threads mixes up their answers. Every
    other thread takes its own by :meth:`for_another_thread`.

    A connection that broke is replaced, trying the addresses in turn. A call is sent a second time only if it may be
    repeated; of any other it is unknown whether the server carried it out, and its caller has to look.

    :param addresses: metastores of one and the same database, in order of preference.
    :param transport_factory: opens connections.
    :param timeout_seconds: limit for connecting and for each wait for an answer.
    :param user: who transactions, locks and requests are recorded for.
    """

    def __init__(
        self,
        addresses: Sequence[MetastoreAddress],
        *,
        transport_factory: TransportFactory | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        user: str | None = None,
    ) -> None:
        if not addresses:
            raise ConfigurationError("metastore", "no address is configured", "name at least one host")
        self.addresses = tuple(addresses)
        self.timeout_seconds = timeout_seconds
        self.user = user or getpass.getuser()
        self._transport_factory: TransportFactory = transport_factory or PlainTransportFactory()
        self._next_address = 0
        self._transport: Transport | None = None
        self._owner: int | None = None
        self._interrupted = False

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def for_another_thread(self: Self) -> Self:
        """A new client with the same settings, to be used by another thread."""
        return type(self)(
            self.addresses,
            transport_factory=self._transport_factory,
            timeout_seconds=self.timeout_seconds,
            user=self.user,
        )

    def close(self) -> None:
        """Close the connection; the next call would open a new one. Never raises."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def interrupt(self) -> None:
        """End the call that the owning thread is waiting for, and refuse all further ones; for any thread."""
        self._interrupted = True
        transport = self._transport
        if transport is not None:
            transport.interrupt()

    def _call(self, subject: str, send: Callable[[ThriftClient], T], *, repeatable: bool) -> T:
        """Carry out one call.

        :param subject: what the call is about, for errors.
        :param send: sends the call and returns its answer.
        :param repeatable: whether carrying it out twice is the same as once.
        :raises MetastoreUnavailableError: no address answers, or the answer to a call that must not be repeated
            got lost.
        """
        self._claim_thread()
        attempts = ROUNDS_OVER_ADDRESSES * len(self.addresses) if repeatable else 1
        for attempt in range(1, attempts + 1):
            transport = self._connected(subject)
            try:
                with _translated(subject):
                    return send(ThriftClient(iprot=transport.protocol))
            except AcidError:
                raise
            except _CONNECTION_ERRORS as error:
                self._give_up_address()
                if attempt == attempts or self._interrupted:
                    raise self._lost_answer(subject, error, repeatable) from error
            except UnicodeDecodeError as error:
                self.close()
                raise MetastoreError(
                    subject, f"the metastore sent text that is not UTF-8 ({error})", "correct the name in the metastore"
                ) from error
            except BaseException:
                # A task's time-out can strike anywhere: the unread answer must not become that of the next call.
                self.close()
                raise
        raise AssertionError("every attempt returns or raises")

    def _invoke(self, subject: str, method: Method, *arguments: object, repeatable: bool) -> Struct:
        """Carry out a call that hmsclient lacks; see :meth:`_call`."""
        return self._call(subject, lambda thrift: thrift.invoke(method, *arguments), repeatable=repeatable)

    def _claim_thread(self) -> None:
        current = threading.get_ident()
        if self._owner is None:
            self._owner = current
        if self._owner != current:
            raise ConfigurationError(
                "metastore client",
                f"belongs to thread {self._owner} and was used by thread {current}",
                "make one client per thread, see for_another_thread()",
            )

    def _connected(self, subject: str) -> Transport:
        """The open connection; a new one, at the first address that accepts, where there is none."""
        if self._transport is not None and not self._transport.is_open():
            self.close()
        failures: list[str] = []
        while self._transport is None and not self._interrupted:
            try:
                self._transport = self._transport_factory.connect(self._address, self.timeout_seconds)
            except _CONNECTION_ERRORS as error:
                failures.append(f"{self._address}: {error}")
                self._give_up_address()
            if len(failures) == len(self.addresses):
                raise MetastoreUnavailableError(
                    subject,
                    f"no metastore answers ({'; '.join(failures)})",
                    "start the metastore, or correct host and port of the connection",
                )
        # interrupt() sets the flag before it looks for a transport: one of the two sees the other's work.
        if self._transport is None or self._interrupted:
            raise MetastoreUnavailableError(subject, "the client was interrupted", "use another client")
        return self._transport

    @property
    def _address(self) -> MetastoreAddress:
        return self.addresses[self._next_address % len(self.addresses)]

    def _give_up_address(self) -> None:
        self.close()
        self._next_address += 1

    def _lost_answer(self, subject: str, error: Exception, repeatable: bool) -> MetastoreUnavailableError:
        names = ", ".join(str(address) for address in self.addresses)
        fate = "" if repeatable else "; whether the metastore carried the call out is unknown"
        return MetastoreUnavailableError(
            subject,
            f"the connection broke ({type(error).__name__}: {error}) and {names} gave no answer{fate}",
            "look at the metastore's log, and raise the time-out if it was only slow",
        )


@contextmanager
def _translated(subject: str) -> Iterator[None]:
    """Turn what the server reports into this package's errors; errors of the connection pass unchanged."""
    try:
        yield
    except _CONNECTION_ERRORS:
        raise
    except TApplicationException as error:
        if error.type in _UNKNOWN_CALLS:
            raise MetastoreVersionError(
                subject, f"the metastore lacks a call this needs ({error})", "use a Hive 4 metastore for this"
            ) from error
        raise MetastoreError(
            subject, f"the metastore failed inside the call ({error})", "look at the metastore's log"
        ) from error
    except _NOT_FOUND as error:
        raise ObjectNotFoundError(
            subject, f"the metastore does not know it ({error.message})", "check the spelling, or look who dropped it"
        ) from error
    except _OWNERSHIP_LOST as error:
        raise OwnershipLostError(
            subject, f"{type(error).__name__}: {error.message}", "nothing was published; start the attempt again"
        ) from error
    except TException as error:
        raise MetastoreError(
            subject, f"{type(error).__name__}: {error.message}", "look at the metastore's log"
        ) from error
