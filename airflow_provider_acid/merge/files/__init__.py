"""Source files and output files as a whole: read, written, sealed, verified."""
