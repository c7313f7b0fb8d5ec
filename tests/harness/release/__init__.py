"""``./release TAG``: what is uploaded is built from a tag, checked, and tried where there is nothing else."""
