"""A program that knows nothing of agents: it counts the words of its standard input.

docs/how-to/without-code.md serves it as an agent, by a table of the configuration.
"""

import sys
from collections import Counter

words = sys.stdin.read().lower().split()
print(f"counting {len(words)} words", file=sys.stderr)
for word, times in Counter(words).most_common(3):
    print(f"{times} {word}")
