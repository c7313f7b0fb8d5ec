"""What takes how long; see docs/performance.md."""
