"""Errors of the metastore's database, in this package's words."""

from __future__ import annotations

from enum import Enum

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError

from airflow_provider_acid.exceptions import MetastoreError, MetastoreUnavailableError

HOW_TO_GRANT = "run what `airflow-acid grants postgresql` or `airflow-acid grants mysql` prints"
"""To a login that lacks a right."""


class Trouble(Enum):
    """Kinds of trouble with a database, told apart by what helps."""

    UNREACHABLE = "no connection, or one that broke"
    BUSY = "somebody else's lock; the transaction is rolled back"
    REJECTED = "the login or the database's name is wrong"
    DENIED = "a grant is missing"
    OTHER = "anything else"


_POSTGRES = {
    **dict.fromkeys(("08", "57P01", "57P02", "57P03", "53300"), Trouble.UNREACHABLE),
    **dict.fromkeys(("55P03", "40P01", "40001"), Trouble.BUSY),
    **dict.fromkeys(("28", "3D"), Trouble.REJECTED),
    "42501": Trouble.DENIED,
}
"""By SQLSTATE, or its class."""

_MYSQL = {
    # Cannot connect (2002, 2003), connection lost (2006, 2013), too many connections, shutdown, killed.
    **dict.fromkeys(
        (1040, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1203, 1927, 2002, 2003), Trouble.UNREACHABLE
    ),
    **dict.fromkeys((2006, 2013, 2055), Trouble.UNREACHABLE),
    **dict.fromkeys((1205, 1213, 3572), Trouble.BUSY),
    **dict.fromkeys((1044, 1045, 1049, 1698), Trouble.REJECTED),
    **dict.fromkeys((1142, 1143, 1227, 1370), Trouble.DENIED),
}
"""By error number."""

_REJECTIONS = ("authentication failed", "no pg_hba.conf entry", "no password supplied", "does not exist")
"""How PostgreSQL's drivers say it, which keep no SQLSTATE of a connection that was refused."""


def trouble_of(error: SQLAlchemyError) -> Trouble:
    """What kind of trouble an error tells of."""
    if not isinstance(error, DBAPIError):
        return Trouble.OTHER
    original = error.orig
    # First: PyMySQL's errors have a number and a SQLSTATE, which says less.
    number = original.args[0] if original is not None and original.args else None
    if isinstance(number, int):
        return _MYSQL.get(number, Trouble.UNREACHABLE if error.connection_invalidated else Trouble.OTHER)
    state = getattr(original, "pgcode", None) or getattr(original, "sqlstate", None)
    if state:
        return _POSTGRES.get(state, _POSTGRES.get(state[:2], Trouble.OTHER))
    if not isinstance(error, (OperationalError, InterfaceError)) and not error.connection_invalidated:
        return Trouble.OTHER
    return Trouble.REJECTED if any(words in str(original) for words in _REJECTIONS) else Trouble.UNREACHABLE


def metastore_error(error: SQLAlchemyError, subject: str, secret: str | None) -> MetastoreError:
    """The error to raise instead.

    :param subject: what the statements were about.
    :param secret: text that must not be repeated.
    """
    trouble = trouble_of(error)
    reason = _reason(error, secret)
    if trouble is Trouble.UNREACHABLE:
        return MetastoreUnavailableError(
            subject,
            f"the metastore's database gives no answer ({reason})",
            "start the database, or correct the connection that metastore_db_conn_id names",
        )
    if trouble is Trouble.BUSY:
        return MetastoreUnavailableError(
            subject, f"somebody else holds a lock in the metastore's database ({reason})", "try again later"
        )
    if trouble is Trouble.REJECTED:
        return MetastoreError(
            subject,
            f"the metastore's database refuses the login ({reason})",
            "correct login, password and schema of the connection that metastore_db_conn_id names",
        )
    if trouble is Trouble.DENIED:
        return MetastoreError(
            subject,
            f"the login lacks a right in the metastore's database ({reason})",
            f"{HOW_TO_GRANT}, as the owner of its tables",
        )
    return MetastoreError(
        subject, f"the metastore's database answered with an error ({reason})", "look at the database's log"
    )


def _reason(error: SQLAlchemyError, secret: str | None) -> str:
    """The driver's own words, on one line; the statement and its parameters are left out."""
    original = error.orig if isinstance(error, DBAPIError) else error
    text = " ".join(f"{type(original).__name__}: {original}".split())
    return text.replace(secret, "***") if secret else text
