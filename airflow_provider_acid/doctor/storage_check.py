"""The one check that changes something for a moment, and is made only where that is asked for: stores are tried."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_acid.compaction.run.round_trip import go_around
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.doctor.check import Check, Seen, note, problem
from airflow_provider_acid.doctor.site import Site
from airflow_provider_acid.exceptions import AcidError


def _round_trip(site: Site) -> Iterator[Seen]:
    """Of each store that has a table, in the directory that is the user's own there."""
    storages = site.settings.storages
    for location in site.location_per_store:
        try:
            with Supervised(location):
                place = site.run_place(location)
                place.check_usable(storages)
        except AcidError:
            yield note(
                f"the store of {location} is not tried",
                "the place for plans and results cannot be used",
                "look at 'run directory'",
            )
            continue
        try:
            with Supervised(location):
                go_around(storages, place)
        except AcidError as error:
            yield problem(
                f"{error.subject} {error.reason}",
                f"what was tried in {place.location} is what every compaction does there with plans and results",
                error.remedy,
            )


STORAGE_CHECKS = (Check("storage round trip", "each store wrote, read, published and removed a file", _round_trip),)
