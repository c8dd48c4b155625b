"""What the tests went through, counted while they run; `python -m pytest --figures` shows it at the end.

Nothing here is judged. What may not be is an assertion where it is counted.
"""

from collections import Counter

FIGURES: Counter[str] = Counter()
