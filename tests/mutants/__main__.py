"""``python -m tests.mutants [WORDS]``: hunts all mutants, or those whose part or name holds the words."""

from __future__ import annotations

import sys

from tests.mutants.hunt import Hunt, table
from tests.mutants.mutant import all_mutants

words = " ".join(sys.argv[1:])
hunt = Hunt([mutant for mutant in all_mutants() if words in f"{mutant.part}: {mutant.name}"], print)
hunt.check_imports()
if broken := hunt.broken_tests():
    sys.exit("\n".join(broken))
verdicts = hunt.verdicts()
print(table(verdicts))
sys.exit(any(verdict.is_alive for verdict in verdicts))
