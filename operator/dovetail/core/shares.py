"""Who has used how much of the time for decisions lately: a namespace, or a pod, that used more goes later.

Nobody is served later for what a usual load costs.
Use is forgotten by half in `HALF_LIFE_SECONDS`, so that nothing is held against a namespace for long.
"""

from dataclasses import dataclass

HALF_LIFE_SECONDS = 10.0

SHARE_SECONDS = 0.5
"""Namespaces are told apart in steps of so much use: within a step priority and age decide alone."""

WASTE_SECONDS = 1.0
"""From so much time lost in searches that were cut, a namespace comes after all others."""

FORGOTTEN_SECONDS = 300.0
"""So long after its last use, which has halved thirty times by then, an account is closed."""


@dataclass(frozen=True, slots=True, order=True)
class Standing:
    """How a namespace or pod stands; the smaller one is served first."""

    is_wasteful: bool = False
    """It has lost much time in searches that were cut: this counts before the priority of its pods."""
    level: int = 0
    """Its use, in steps: this counts after priority, before age."""


FRESH = Standing()


@dataclass(slots=True)
class _Account:
    """Seconds as of a moment."""

    at: float
    used: float = 0.0
    wasted: float = 0.0

    def kept(self, now: float) -> float:
        """The part that is not forgotten."""
        return float(0.5 ** (max(now - self.at, 0.0) / HALF_LIFE_SECONDS))

    def move_to(self, now: float) -> None:
        """Forget what time makes forget."""
        kept = self.kept(now)
        self.used *= kept
        self.wasted *= kept
        self.at = now


class Shares:
    """Accounts by name, of namespaces and of pods; `now` is in seconds and never goes back."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}
        self._swept_at = 0.0

    def __len__(self) -> int:
        return len(self._accounts)

    def charge(self, name: str, seconds: float, now: float, *, wasted: bool = False) -> None:
        """Somebody has used so much; `wasted` where the search was cut."""
        self._sweep(now)
        account = self._accounts.setdefault(name, _Account(now))
        account.move_to(now)
        account.used += seconds
        account.wasted += seconds if wasted else 0.0

    def standing(self, name: str, now: float) -> Standing:
        """How it stands now."""
        account = self._accounts.get(name)
        if account is None:
            return FRESH
        kept = account.kept(now)
        return Standing(account.wasted * kept >= WASTE_SECONDS, int(account.used * kept / SHARE_SECONDS))

    def _sweep(self, now: float) -> None:
        """Forget those of whom nothing was heard for long."""
        if now - self._swept_at < FORGOTTEN_SECONDS:
            return
        self._swept_at = now
        for name in [
            name for name, account in self._accounts.items() if now - account.at > FORGOTTEN_SECONDS
        ]:
            del self._accounts[name]
