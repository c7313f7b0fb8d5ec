"""One file of rows from stripes that are copied and stripes that are decoded."""
