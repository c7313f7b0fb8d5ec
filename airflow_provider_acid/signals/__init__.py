"""What the tasks tell others: metrics, asset events, lineage. Never a reason for a task to fail."""
