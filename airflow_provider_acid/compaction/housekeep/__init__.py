"""What no single compaction looks after: stuck requests, forgotten cleanings."""
