"""What takes how long; see docs/measurements.md."""
