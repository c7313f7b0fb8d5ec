"""What Airflow's hook leaves of a ``spark-submit`` that it started."""

from __future__ import annotations

from airflow_provider_acid.operators.compaction import AcidCompactionOperator


def reap(operator: AcidCompactionOperator) -> None:
    """Wait for the process and close its pipe: the hook does neither where it killed it, and never closes the pipe."""
    submission = operator._submission
    hook = None if submission is None else submission._hook
    if hook is not None and hook._submit_sp is not None:
        hook._submit_sp.wait()
        hook._submit_sp.stdout.close()
