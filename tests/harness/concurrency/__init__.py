"""Writers, readers, compactions and cleanings of the same partitions all at once, judged by a ledger.

Every actor is a thread with connections of its own; the threads are spread over several processes. What each does is
drawn from the run's seed and its own name; how they interleave is not.
"""
