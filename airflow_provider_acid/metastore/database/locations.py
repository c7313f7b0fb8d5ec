"""Where the tables and partitions of a metastore lie, asked of its database."""

from __future__ import annotations

from sqlalchemy import and_, func, not_, or_, select
from sqlalchemy.engine import Connection
from sqlalchemy.sql.elements import ColumnElement

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.location import Directory
from airflow_provider_acid.metastore.database.database import MetastoreDatabase

_ODD_SPELLINGS = ("%/./%", "%/../%", "%/.", "%/..", "%/%_//%")
"""Of locations in which a path's text may not be found; the last one has a pair of slashes behind another slash."""


class StoredLocations:
    """DBS, TBLS, PARTITIONS and SDS; only read, and only when asked.

    :param database: the metastore's database.
    """

    def __init__(self, database: MetastoreDatabase) -> None:
        self._database = database

    def near(self, directory: Directory, own: Entity) -> list[tuple[Entity, str]]:
        """Others with their locations: all that lie at, above or below a directory, and some that do not.

        :param own: what lies there; its table is left out, and so are a table's own partitions.
        :raises MetastoreError: the database does not answer, or not with these tables.
        """
        databases = self._database.table("DBS", ("DB_ID", "NAME"))
        tables = self._database.table("TBLS", ("TBL_ID", "DB_ID", "SD_ID", "TBL_NAME"))
        partitions = self._database.table("PARTITIONS", ("TBL_ID", "SD_ID", "PART_NAME"))
        places = self._database.table("SDS", ("SD_ID", "LOCATION"))
        names, location = (databases["NAME"], tables["TBL_NAME"]), places["LOCATION"]
        is_own = and_(
            self._database.equals(databases["NAME"], own.database), self._database.equals(tables["TBL_NAME"], own.table)
        )
        near = and_(tables["DB_ID"] == databases["DB_ID"], _may_be_near(location, directory))
        of_tables = select(*names, location).where(near, tables["SD_ID"] == places["SD_ID"], not_(is_own))
        of_partitions = select(*names, partitions["PART_NAME"], location).where(
            near, partitions["SD_ID"] == places["SD_ID"], partitions["TBL_ID"] == tables["TBL_ID"]
        )
        if own.partition is None:
            of_partitions = of_partitions.where(not_(is_own))

        def look(connection: Connection) -> list[tuple[Entity, str]]:
            return [
                (Entity(*found[:-1]), str(found[-1] or ""))
                for query in (of_tables, of_partitions)
                for found in connection.execute(query)
            ]

        return self._database.read(f"locations around {own}", look)


def _may_be_near(location: ColumnElement[str], directory: Directory) -> ColumnElement[bool]:
    """Whatever its scheme and authority: true of every location at, above or below a directory."""
    paths = ["/" + "/".join(place.path) for place in (directory, *directory.above) if place.path]
    root = "://" + directory.store[1]
    return or_(
        location.contains(paths[0] + "/" if paths else "/", autoescape=True),
        # A store's root; a port may follow.
        and_(func.lower(location).contains(root, autoescape=True), not_(location.like("%://%/%"))),
        *(func.lower(location).endswith(end.lower(), autoescape=True) for end in (*paths, "/")),
        *(location.like(spelling) for spelling in _ODD_SPELLINGS),
    )
