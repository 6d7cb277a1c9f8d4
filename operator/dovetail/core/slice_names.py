"""What slices name: the nodes that they are on, and the attributes that their devices publish."""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from dovetail.api.slices import ResourceSlice


class AttributeNames:
    """Qualified names, each as long as some slice publishes it."""

    def __init__(self) -> None:
        self._slices: Counter[str] = Counter()

    @property
    def names(self) -> AbstractSet[str]:
        """The names; the view changes with what is published."""
        return self._slices.keys()

    def add(self, published: ResourceSlice) -> None:
        """Count a slice."""
        self._slices.update(_names_in(published))

    def remove(self, published: ResourceSlice) -> None:
        """Count a slice no longer."""
        for name in _names_in(published):
            self._slices[name] -= 1
            if not self._slices[name]:
                del self._slices[name]


def _names_in(published: ResourceSlice) -> set[str]:
    """Bare names lie in the driver's domain (V22)."""
    bare = {name for device in published.spec.devices for name in device.attributes}
    return {name if "/" in name else f"{published.spec.driver}/{name}" for name in bare}


def nodes_in(published: ResourceSlice) -> Iterable[str]:
    """The nodes that a slice, or a device in it, names."""
    names = {published.spec.node_name, *(device.node_name for device in published.spec.devices)}
    return sorted(name for name in names if name)
