"""The Spark application that carries out compaction plans.

``spark-submit --py-files airflow_provider_acid_spark.zip compact.py --run-directory URI --key-file PATH``. It makes the
session and ends the process; :class:`~airflow_provider_acid.merge.app.driver.Driver` does the work.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from pyspark import SparkConf
from pyspark.sql import SparkSession

EXIT_FAILED = 1
UNFIT = "airflow-acid unfit: "
"""Begins the line that tells the operator why no partition can be merged here, and that no other try can help."""


def say_unfit(subject: str, reason: str, remedy: str) -> None:
    """Say what is wrong with the driver's machine or settings, in the parts of an error."""
    print(UNFIT + json.dumps({"subject": subject, "reason": reason, "remedy": remedy}), flush=True)


try:
    from airflow_provider_acid.acid.arguments import from_argument
    from airflow_provider_acid.exceptions import ConfigurationError
    from airflow_provider_acid.filesystem import Storages
    from airflow_provider_acid.merge.app.driver import Driver, bounded
    from airflow_provider_acid.merge.app.pyarrow_version import check_pyarrow
    from airflow_provider_acid.merge.app.run_secret import read_secret
except ImportError as error:
    is_ours = (error.name or "").startswith("airflow_provider_acid")
    say_unfit(
        f"Python {sys.executable} of Spark's driver",
        f"cannot import what a merge needs ({error})",
        "leave ship_package on"
        if is_ours
        else "install pyarrow 19 or later, pyorc and protobuf for it, or name another by spark.pyspark.driver.python",
    )
    sys.exit(EXIT_FAILED)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The application's arguments, as the operator gives them.

    :param argv: those of the command line, with texts as :func:`~..acid.arguments.as_argument` makes them.
    """
    parser = argparse.ArgumentParser(description="Carry out the compaction plans of a run directory.")
    parser.add_argument(
        "--run-directory", required=True, type=from_argument, help="URI of the directory the operator has made"
    )
    parser.add_argument(
        "--key-file",
        required=True,
        type=from_argument,
        help="file with the run's key; its name, where it was sent along",
    )
    parser.add_argument(
        "--storage-options", default="{}", type=from_argument, help="how storages are reached, in JSON; nothing secret"
    )
    return parser.parse_args(argv)


def work(arguments: argparse.Namespace) -> int:
    """Carry out the plans of a run directory.

    :returns: the exit code of the driver.
    """
    # Small partitions must not wait behind a big one; a site's own setting stands.
    conf = SparkConf().setIfMissing("spark.scheduler.mode", "FAIR")
    # Spark Connect may also be meant by the machine's environment, or by an installed package.
    os.environ["SPARK_API_MODE"] = "classic"
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    try:
        check_pyarrow()
        storages, secret = Storages.from_json(arguments.storage_options), read_secret(arguments.key_file)
        return Driver(spark, arguments.run_directory, storages, secret).run()
    finally:
        bounded(spark.stop)


def main() -> NoReturn:
    """Run the application and end the process: an interpreter would wait for threads, and one may hang in a merge."""
    arguments = parse_arguments()
    code = EXIT_FAILED
    try:
        code = work(arguments)
    except ConfigurationError as error:
        say_unfit(error.subject, error.reason, error.remedy)
    except BaseException:  # noqa: BLE001 - the process ends with it
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
