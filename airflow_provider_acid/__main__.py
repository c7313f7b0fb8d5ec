"""``python -m airflow_provider_acid`` is the command ``airflow-acid``."""

import sys

from airflow_provider_acid.doctor.command import main

sys.exit(main())
