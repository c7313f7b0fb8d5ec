"""The one family of errors of this package.

Every error names the object it is about, the reason, and the remedy, in that order.
"""

from typing import ClassVar


class AcidError(Exception):
    """Base of all errors raised by this package.

    ``is_permanent`` says whether another try ends the same way unless somebody changes something: a task is not
    tried again then.

    :param subject: what the error is about, e.g. ``table sales.orders`` or a file's URI.
    :param reason: what is wrong with it, as a clause without a full stop.
    :param remedy: what the reader can do about it, as a clause without a full stop.
    """

    is_permanent: ClassVar[bool] = False

    def __init__(self, subject: str, reason: str, remedy: str) -> None:
        super().__init__(subject, reason, remedy)
        self.subject = subject
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}. Remedy: {self.remedy}."


class RefusedError(AcidError):
    """The request is understood but not carried out; nothing was changed."""

    is_permanent = True


class UnsupportedTableError(RefusedError):
    """A table, or a kind of directory or file in it, that this release does not compact."""


class UnknownNameError(RefusedError):
    """A directory or file name that none of Hive's, Trino's or the streaming writers' rules explain."""


class NotEnoughHistoryError(RefusedError):
    """A partition with a compacted base that is newer than what a snapshot may see, and no older one."""


class CorruptFileError(RefusedError):
    """A data file that cannot be read exactly: truncated, wrong magic, wrong schema, wrong order."""


class VerificationError(AcidError):
    """An output that was written but does not hold what it must; it is never published."""


class UnauthenticatedError(AcidError):
    """A file of a run that neither its operator nor its application wrote as it is; nothing of it was read."""


class StorageError(AcidError):
    """The warehouse's storage refused, lost or cannot do what was asked."""


class UnsupportedStorageError(StorageError):
    """A location on a kind of storage that this release does not know."""

    is_permanent = True


class ForbiddenError(StorageError):
    """A file system does not let this user do what was asked; of an object store's policies that is not known."""

    is_permanent = True


class HalfPublishedError(StorageError):
    """A part of a result is published, or may be; neither could the rest be, nor was the part taken back."""


class LastCopyError(AcidError):
    """What was to be taken away holds rows that are nowhere else; nothing was changed.

    No :class:`RefusedError`: whoever tries for a lock takes one of these for a lock that is not to be had.
    """

    is_permanent = True


class NameTakenError(StorageError):
    """The name a result was to be published under exists already."""


class MetastoreError(AcidError):
    """The Hive metastore answered with an error."""


class MetastoreUnavailableError(MetastoreError):
    """No configured metastore address answers."""


class MetastoreAccessError(MetastoreUnavailableError):
    """Every configured metastore talks in another way than the connection says, or must not be trusted."""

    is_permanent = True


class MetastoreVersionError(MetastoreError):
    """The metastore lacks a call that this package needs."""

    is_permanent = True


class ObjectNotFoundError(MetastoreError):
    """A database, table or partition that the metastore does not know."""

    is_permanent = True


class MisnamedError(ObjectNotFoundError):
    """A partition of a table that has none, or a partitioned table without one: the table is there, in another form."""


class OwnershipLostError(AcidError):
    """Claim, transaction or lock no longer belong to this attempt; it must stop and publish nothing."""


class SparkJobError(AcidError):
    """The Spark application ended without a usable result for a partition."""


class UnexpectedError(AcidError):
    """What nobody foresaw, while one item among many was worked on: odd input, or a mistake of this package."""


class ConfigurationError(AcidError):
    """A parameter or setting that cannot be used."""

    is_permanent = True


class MetastoreStateError(ConfigurationError):
    """What lies in a metastore's database shows that it is set up wrongly; after an outage that may pass by itself."""

    is_permanent = False
