"""A look at a site before anything is installed, or after: it changes nothing, and needs neither Airflow nor Spark."""
