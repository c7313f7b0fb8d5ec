"""Damaged documents by the thousand: how they are made, played and judged.

A *subject* is one thing that reads bytes which others may have written. It has *seeds*, real documents; a *case* is a
number, from which its bytes follow for ever, as long as the seeds stay as they are. What a case once found lies in
``tests/fuzz/corpus/<subject>/`` and is played first, by every run.
"""
