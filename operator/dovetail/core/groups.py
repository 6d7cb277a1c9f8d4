"""Compatibility groups: which devices may draw from one counter set together (KEP-5963)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Companions:
    """The devices that draw from a counter set: what groups all of them share.

    A device without groups goes only with devices that have none.
    """

    groups: frozenset[str]
    groupless: bool

    def admits(self, groups: frozenset[str]) -> bool:
        """Whether a device with these groups may join."""
        if not groups:
            return self.groupless
        return not self.groupless and not self.groups.isdisjoint(groups)


def joined(companions: Companions | None, groups: frozenset[str]) -> Companions:
    """The companions once a device with these groups has joined; None stands for no device so far.

    Where devices in use contradict each other already, nobody may join any more.
    """
    if companions is None:
        return Companions(groups, groupless=not groups)
    if companions.groupless and not groups:
        return companions
    return Companions(companions.groups & groups, groupless=False)
