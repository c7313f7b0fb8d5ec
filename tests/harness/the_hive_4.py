"""Which Hive 4 a test works on that names none: the newest, or with ``TEST_HIVE_4=4.1.0`` another.

``./run-tests every-hive`` runs the tests of integration, crash and judge on each of the others.
"""

from __future__ import annotations

import os

from tests.harness.hive_engine_program import HIVE_4, HIVE_4_0_0, HIVE_4_1, HIVE_4_2, HIVE_4_ALPHA

NAMES = {
    HIVE_4_ALPHA: "hive_4_alpha",
    HIVE_4_0_0: "hive_4_0_0",
    HIVE_4: "hive_4",
    HIVE_4_1: "hive_4_1",
    HIVE_4_2: "hive_4_2",
}
"""What fixtures are called after each."""

THE_HIVE_4 = os.environ.get("TEST_HIVE_4", HIVE_4_2)
NAME = NAMES[THE_HIVE_4]
NAME_WITH_DATABASE = "hive_4_on_postgres" if THE_HIVE_4 == HIVE_4 else NAME
"""The same with a database that others can open, too; 4.0.1 is on embedded Derby else."""
