"""``python -m airflow_provider_acid`` is the command ``airflow-acid``."""

import sys

from airflow_provider_acid.command import main

if __name__ == "__main__":
    sys.exit(main())
