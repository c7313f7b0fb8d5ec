"""Sends measurements through Airflow's Stats: to StatsD, DogStatsD or OpenTelemetry, as Airflow is configured."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from airflow_provider_acid.compaction.clean.cleaning import Cleaning
from airflow_provider_acid.compaction.evaluate.initiator import Evaluation
from airflow_provider_acid.signals import metrics
from airflow_provider_acid.signals.measurements import Measurement, of_cleanings, of_evaluation
from airflow_provider_acid.signals.metrics import Kind, Metric

log = logging.getLogger(__name__)


def send(measurements: Iterable[Measurement], tags: Mapping[str, str]) -> None:
    """Send measurements; whatever goes wrong is logged once and never raised.

    :param tags: connection and DAG; what sends plain StatsD drops them.
    """
    try:
        from airflow.providers.common.compat.sdk import Stats

        for item in measurements:
            name = f"{metrics.PREFIX}{item.metric.name}"
            if item.metric.kind is Kind.COUNTER:
                Stats.incr(name, int(item.value), tags=dict(tags))
            else:
                Stats.gauge(name, item.value, tags=dict(tags))
    except Exception as error:  # noqa: BLE001 - whatever a site's metrics backend raises: it must not stop a compaction
        log.warning("Metrics were not sent: %s: %s", type(error).__name__, error)


@contextmanager
def initiator_cycle(tags: Mapping[str, str]) -> Iterator[Callable[[Evaluation], None]]:
    """Measures one look of the sensor: the block hands over what it found; an error of it is counted and goes on."""
    found: list[Evaluation] = []
    began = time.monotonic()
    with _counting(metrics.INITIATOR_FAILURES, tags):
        yield found.append
    for evaluation in found:
        send(of_evaluation(evaluation, time.monotonic() - began), tags)


@contextmanager
def cleaner_cycle(tags: Mapping[str, str]) -> Iterator[Callable[[Sequence[Cleaning]], None]]:
    """Measures one cleaning, as :func:`initiator_cycle` does a look."""
    found: list[Sequence[Cleaning]] = []
    began = time.monotonic()
    with _counting(metrics.CLEANER_FAILURES, tags):
        yield found.append
    for cleanings in found:
        send(of_cleanings(cleanings, time.monotonic() - began), tags)


@contextmanager
def _counting(failures: Metric, tags: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    except Exception:
        send([Measurement(failures, 1)], tags)
        raise
