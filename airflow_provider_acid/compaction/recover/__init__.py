"""What dead attempts left behind, and how it is ended."""
