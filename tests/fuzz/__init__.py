"""One module per subject; all are named in ``subjects.py``; see ``tests/harness/fuzzing``.

A case that a run has found is put into ``corpus/<subject>/`` by ``python -m tests.fuzz.keep PATH NUMBER``.
"""
