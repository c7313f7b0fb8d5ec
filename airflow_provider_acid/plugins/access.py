"""Who may see the page: who may see Airflow's UI, and the runs of the DAG that compacts tables.

The application is mounted beside Airflow's own API, whose checks therefore do not hold for it. Runs are started by
Airflow's API itself, in the user's name, so that its rules hold for them without any of ours.
"""

from __future__ import annotations

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_dag, requires_access_view
from fastapi import Depends

COMPACT_DAG_ID, UNDO_DAG_ID = "acid_compact_table", "acid_undo"
"""The DAGs that the page starts."""

REQUIRED = [
    Depends(requires_access_view(AccessView.WEBSITE)),
    Depends(requires_access_dag("GET", DagAccessEntity.RUN, COMPACT_DAG_ID)),
]
"""What every route depends on."""
