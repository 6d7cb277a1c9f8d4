"""What is remembered about pods between two looks, and which of them wait, for what."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.services.picture import Json, Key


@dataclass(slots=True)
class Notes:
    """About one pod."""

    key: Key
    uid: str
    waiting: dict[Key, str] = field(repr=False)
    """The notebook's list of pods that wait."""
    unsettled: tuple[Key, ...] = ()
    """Claims of which nobody knows whether they were written."""
    lacking_since: float | None = None
    """Since when claims of the pod have been missing, or nameless."""
    warned: bool = False
    gave_way: bool = False
    unreserved_since: float | None = None
    given: set[Key] = field(default_factory=set)
    """Claims that were written for the pod: its status may name them only later."""

    @property
    def waits_for(self) -> str:
        """The reason why the pod waits; empty where it does not."""
        return self.waiting.get(self.key, "")

    def wait(self, reason: str) -> bool:
        """The pod waits; whether the reason is news."""
        if self.waits_for == reason:
            return False
        self.waiting[self.key] = reason
        return True

    def go_on(self) -> None:
        """The pod waits no longer."""
        self.lacking_since = None
        self.waiting.pop(self.key, None)


class Notebook:
    """About all pods."""

    def __init__(self) -> None:
        self._notes: dict[Key, Notes] = {}
        self._waiting: dict[Key, str] = {}

    @property
    def waiting(self) -> Mapping[Key, str]:
        """The pods that wait, with the reason."""
        return self._waiting

    def about(self, key: Key, pod: Json) -> Notes:
        """What is known about a pod; nothing, where another pod had its name before."""
        notes = self._notes.get(key)
        if notes is None or notes.uid != pod["metadata"]["uid"]:
            self.forget(key)
            notes = self._notes[key] = Notes(key, pod["metadata"]["uid"], self._waiting)
        return notes

    def forget(self, key: Key) -> None:
        """The pod is gone, or done; whoever is still at work on it notes in the air."""
        notes = self._notes.pop(key, None)
        if notes is not None:
            notes.waiting = {}
        self._waiting.pop(key, None)
