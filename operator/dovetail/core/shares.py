"""Who has used how much of the time for decisions lately: a namespace, or a pod, that used more goes later.

Nobody is served later for what a usual load costs.
Use is forgotten by half in `HALF_LIFE_SECONDS`, so that nothing is held against a namespace for long.
"""

from dataclasses import dataclass
from math import ceil

from dovetail.core.allowance import BRIEF_SECONDS, Allowance

HALF_LIFE_SECONDS = 10.0

SHARE_SECONDS = 0.5
"""Namespaces are told apart in steps of so much use: within a step priority and age decide alone."""

WASTE_SECONDS = 1.0
"""From so much time lost in searches that were cut, a namespace comes after all others."""

FAINT = 0.125
"""A first search that was cut counts until so much of it is left: for three times `HALF_LIFE_SECONDS`."""

FORGOTTEN_SECONDS = 300.0
"""So long after its last use, which has halved thirty times by then, an account is closed."""


@dataclass(frozen=True, slots=True, order=True)
class Standing:
    """How a namespace or pod stands; the smaller one is served first."""

    waste: int = 0
    """How much time it has lost in searches that were cut: this counts before the priority of its pods.

    As long as all together lose little, only much counts (1).
    When first searches that are cut take more than is allowed for them, each of them counts: who has a
    single one comes before those who go on making them.
    """
    level: int = 0
    """Its use, in steps: this counts after priority, before age."""


FRESH = Standing()


@dataclass(slots=True)
class _Account:
    """Seconds, and a number, as of a moment."""

    at: float
    used: float = 0.0
    wasted: float = 0.0
    cuts: float = 0.0
    """First searches that were cut."""

    def kept(self, now: float) -> float:
        """The part that is not forgotten."""
        return float(0.5 ** (max(now - self.at, 0.0) / HALF_LIFE_SECONDS))

    def move_to(self, now: float) -> None:
        """Forget what time makes forget."""
        kept = self.kept(now)
        self.used *= kept
        self.wasted *= kept
        self.cuts *= kept
        self.at = now


class Shares:
    """Accounts by name, of namespaces and of pods; `now` is in seconds and never goes back."""

    def __init__(self) -> None:
        self.first_searches = Allowance()
        self._accounts: dict[str, _Account] = {}
        self._swept_at = 0.0

    def __len__(self) -> int:
        return len(self._accounts)

    def charge(self, name: str, seconds: float, now: float, *, wasted: bool = False) -> None:
        """Somebody has used so much; `wasted` where the search was cut."""
        account = self._account(name, now)
        account.used += seconds
        account.wasted += seconds if wasted else 0.0

    def charge_first(self, name: str, seconds: float, now: float) -> None:
        """A first search was cut after so long; one that ran away counts for several."""
        self._account(name, now).cuts += max(seconds // BRIEF_SECONDS, 1.0)
        self.first_searches.spend(seconds, now)

    def standing(self, name: str, now: float) -> Standing:
        """How it stands now."""
        account = self._accounts.get(name)
        if account is None:
            return FRESH
        kept = account.kept(now)
        if self.first_searches.is_spent(now):
            waste = max(ceil(account.cuts * kept - FAINT), 0)
        else:
            waste = int(account.wasted * kept >= WASTE_SECONDS)
        return Standing(waste, int(account.used * kept / SHARE_SECONDS))

    def _account(self, name: str, now: float) -> _Account:
        """An account as of now."""
        self._sweep(now)
        account = self._accounts.setdefault(name, _Account(now))
        account.move_to(now)
        return account

    def _sweep(self, now: float) -> None:
        """Forget those of whom nothing was heard for long."""
        if now - self._swept_at < FORGOTTEN_SECONDS:
            return
        self._swept_at = now
        for name in [
            name for name, account in self._accounts.items() if now - account.at > FORGOTTEN_SECONDS
        ]:
            del self._accounts[name]
