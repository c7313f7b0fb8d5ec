"""One connection to a metastore: addresses, threads, reconnects, and errors in this package's words."""

from __future__ import annotations

import getpass
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TTransport import TTransportException

from airflow_provider_acid.exceptions import (
    AcidError,
    ConfigurationError,
    MetastoreAccessError,
    MetastoreError,
    MetastoreUnavailableError,
    MetastoreVersionError,
    ObjectNotFoundError,
    OwnershipLostError,
)
from airflow_provider_acid.metastore.thrift.binary_protocol import UnusableConnectionError
from airflow_provider_acid.metastore.thrift.exchange import UnreadableAnswerError, ask
from airflow_provider_acid.metastore.thrift.late import ttypes
from airflow_provider_acid.metastore.thrift.transport import (
    MetastoreAddress,
    PlainTransportFactory,
    Transport,
    TransportFactory,
)
from airflow_provider_acid.metastore.thrift.wire import Method

Self = TypeVar("Self", bound="MetastoreConnection")

DEFAULT_TIMEOUT_SECONDS = 60.0

ROUNDS_OVER_ADDRESSES = 2
"""How often a call that may be repeated is tried at each address before the metastore counts as unreachable."""

_CONNECTION_ERRORS = (TTransportException, TProtocolException, OSError, EOFError)
_UNKNOWN_FATE = "; whether the metastore carried the call out is unknown"
_LOOK = "look at the metastore's log, and raise the time-out (timeout_seconds) if it was only slow"
_SHOWN_CHARACTERS = 4000
"""Of a server's message; Hive puts whole stack traces there."""

_UNKNOWN_CALLS = (TApplicationException.UNKNOWN_METHOD, TApplicationException.WRONG_METHOD_NAME)


@dataclass
class Reached:
    """Which of several metastores was connected to last; connections that share it begin there.

    :ivar index: its place among the addresses.
    """

    index: int = 0


class MetastoreConnection:
    """A connection to the first of several metastores that answers.

    Belongs to the thread that uses it first: a Thrift stream shared by two threads mixes up their answers. Every
    other thread takes its own by :meth:`for_another_thread`.

    A connection that broke is replaced, trying the addresses in turn. A call is sent a second time only if it may be
    repeated; of any other it is unknown whether the server carried it out, and its caller has to look.

    :param addresses: metastores of one and the same database, in order of preference.
    :param transport_factory: opens connections.
    :param timeout_seconds: limit for connecting, and for a call from its sending to the last byte of its answer.
    :param user: who transactions, locks and requests are recorded for.
    :param reached: shared with other connections to the same addresses, so that a dead one costs them no time-out each.
    """

    def __init__(
        self,
        addresses: Sequence[MetastoreAddress],
        *,
        transport_factory: TransportFactory | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        user: str | None = None,
        reached: Reached | None = None,
    ) -> None:
        if not addresses:
            raise ConfigurationError("metastore", "no address is configured", "name at least one host")
        self.addresses = tuple(addresses)
        self.timeout_seconds = timeout_seconds
        self.user = user or getpass.getuser()
        self._transport_factory: TransportFactory = transport_factory or PlainTransportFactory()
        self._reached = reached or Reached()
        self._next_address = self._reached.index
        self._transport: Transport | None = None
        self._owner: int | None = None
        self._interrupted = False
        self._calls = 0
        self._config: dict[str, str] = {}
        """What the server that is connected said of its settings; forgotten with the connection."""

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
            reached=self._reached,
        )

    def close(self) -> None:
        """Close the connection; the next call would open a new one. Never raises."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None
        self._config.clear()

    def interrupt(self) -> None:
        """End the call that the owning thread is waiting for, and refuse all further ones; for any thread."""
        self._interrupted = True
        transport = self._transport
        if transport is not None:
            transport.interrupt()

    def _invoke(self, subject: str, method: Method, *arguments: object, repeatable: bool) -> Any:
        """Carry out one call: its result, or an empty struct where it is void.

        :param subject: what the call is about, for errors.
        :param repeatable: whether carrying it out twice is the same as once.
        :raises MetastoreUnavailableError: no address answers, or the answer to a call that must not be repeated
            got lost or cannot be used; as :class:`MetastoreAccessError` where that stays so.
        """
        self._claim_thread()
        attempts = ROUNDS_OVER_ADDRESSES * len(self.addresses) if repeatable else 1
        broken: list[Exception] = []
        for attempt in range(1, attempts + 1):
            transport = self._connected(subject)
            self._calls += 1
            try:
                with _translated(subject):
                    return ask(transport.protocol, self._calls, method, arguments)
            except AcidError:
                raise
            except _CONNECTION_ERRORS as error:
                self._give_up_address()
                broken.append(error)
                if attempt == attempts or self._interrupted:
                    raise self._lost_answer(subject, broken, repeatable) from error
            except UnreadableAnswerError as error:
                self.close()
                if repeatable:
                    raise MetastoreError(subject, str(error), error.remedy) from error
                raise MetastoreUnavailableError(subject, f"{error}{_UNKNOWN_FATE}", error.remedy) from error
            except BaseException:
                # A task's time-out can strike anywhere: the unread answer must not become that of the next call.
                self.close()
                raise
        raise AssertionError("every attempt returns or raises")

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
        failures: list[tuple[MetastoreAddress, Exception]] = []
        while self._transport is None and not self._interrupted:
            try:
                self._transport = self._transport_factory.connect(self._address, self.timeout_seconds)
                self._reached.index = self._next_address
            except _CONNECTION_ERRORS as error:
                failures.append((self._address, error))
                self._give_up_address()
            if len(failures) == len(self.addresses):
                raise _no_connection(subject, failures)
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

    def _lost_answer(self, subject: str, errors: Sequence[Exception], repeatable: bool) -> MetastoreUnavailableError:
        names = ", ".join(str(address) for address in self.addresses)
        error = errors[-1]
        was_sent = not isinstance(error, UnusableConnectionError) or error.was_sent
        fate = _UNKNOWN_FATE if was_sent and not repeatable else ""
        return _kind_of(errors)(
            subject,
            f"the connection broke ({type(error).__name__}: {error}) and {names} gave no answer{fate}",
            error.remedy if isinstance(error, UnusableConnectionError) else _LOOK,
        )


def _no_connection(subject: str, failures: Sequence[tuple[MetastoreAddress, Exception]]) -> MetastoreUnavailableError:
    told = "; ".join(f"{address}: {error}" for address, error in failures)
    errors = [error for _, error in failures]
    remedies = dict.fromkeys(error.remedy for error in errors if isinstance(error, UnusableConnectionError))
    return _kind_of(errors)(
        subject,
        f"no metastore answers ({told})",
        "; ".join(remedies) or "start the metastore, or correct host and port of the connection",
    )


def _kind_of(errors: Sequence[Exception]) -> type[MetastoreUnavailableError]:
    is_final = all(isinstance(error, UnusableConnectionError) and error.is_final for error in errors)
    return MetastoreAccessError if is_final else MetastoreUnavailableError


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
                subject, f"the metastore lacks a call this needs ({_shown(error)})", "use a Hive 4 metastore for this"
            ) from error
        raise MetastoreError(
            subject, f"the metastore failed inside the call ({_shown(error)})", "look at the metastore's log"
        ) from error
    except (
        ttypes.NoSuchObjectException,
        ttypes.UnknownDBException,
        ttypes.UnknownTableException,
        ttypes.UnknownPartitionException,
    ) as error:
        raise ObjectNotFoundError(
            subject, f"the metastore does not know it ({_shown(error)})", "check the spelling, or look who dropped it"
        ) from error
    except (ttypes.NoSuchTxnException, ttypes.TxnAbortedException, ttypes.NoSuchLockException) as error:
        raise OwnershipLostError(
            subject, f"{type(error).__name__}: {_shown(error)}", "nothing was published; start the attempt again"
        ) from error
    except TException as error:
        raise MetastoreError(
            subject, f"{type(error).__name__}: {_shown(error)}", "look at the metastore's log"
        ) from error


def _shown(error: TException) -> str:
    return str(error.message)[:_SHOWN_CHARACTERS]
