"""How often Python looks for garbage in cycles: seldom, and never among what stays for good.

The picture of a large cluster is millions of objects.
By default each full collection walks over all of them, which costs a tenth of the operator's CPU time
and stops decisions and the Lease for as long as it takes.
Objects that are replaced are freed at once all the same, since nothing in the picture is a cycle.
"""

import gc

YOUNG = 50_000
"""New objects before the youngest are looked at."""

OLDER = 20
"""Collections of one generation before the next older one is included."""


def collect_seldom() -> None:
    """Call it at the start: the first lists alone would be walked over a thousand times."""
    gc.set_threshold(YOUNG, OLDER, OLDER)


def spare_what_stays() -> None:
    """Call it when the picture is complete: what is there now is not looked at again."""
    gc.collect()
    gc.freeze()
