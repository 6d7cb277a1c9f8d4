"""Numbers for what nodes are offered and what of it is in use: equal numbers mean equal answers.

There are two kinds.
Drafts compare slices as they are published, and are cheap to keep up to date.
Shapes and states leave out what no expression reads; they are worked out from drafts, once for each.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence

from dovetail.core.pools import PoolOffer
from dovetail.core.refusals import PoolRefusal
from dovetail.core.sameness import Numbers, Sameness


class States:
    """The numbers of one inventory."""

    def __init__(self) -> None:
        self._sameness = Sameness()
        self._draft_shapes, self._draft_states = Numbers(), Numbers()
        self._shapes, self._states = Numbers(), Numbers()
        self._shape_of: dict[int, int] = {}
        self._state_of: dict[int, int] = {}
        self.stamp = 0
        """Grows when shapes and states are worked out anew."""

    def notice(self, reads: Iterable[frozenset[str] | None]) -> None:
        """Take note of what expressions read of devices: nodes that differ in it are no longer the same."""
        if self._sameness.notice(reads):
            self.forget()

    def forget(self) -> None:
        """Work out shapes and states anew."""
        self._shape_of.clear()
        self._state_of.clear()
        self.stamp += 1

    def draft_shape(
        self,
        pools: Sequence[PoolOffer],
        refused: Sequence[PoolRefusal],
        others: Hashable,
    ) -> int:
        """A number for what a node is offered, as it is published; `others` is all else that counts."""
        key = (
            tuple([_draft_of(pool) for pool in pools]),
            tuple([(part.pool.driver, part.cause, part.detail) for part in refused]),
            others,
        )
        return self._draft_shapes.of(key)

    def draft_state(self, draft_shape: int, usage_keys: Sequence[Hashable]) -> int:
        """A number for a draft shape with what of it is in use."""
        return self._draft_states.of((draft_shape, tuple(usage_keys)))

    def shape(
        self,
        draft_shape: int,
        pools: Sequence[PoolOffer],
        others: Hashable,
    ) -> int:
        """The shape of a draft; `others` is all that counts besides the pools."""
        shape = self._shape_of.get(draft_shape)
        if shape is None:
            key = (tuple(map(self._look_of, pools)), others)
            shape = self._shape_of[draft_shape] = self._shapes.of(key)
        return shape

    @property
    def known(self) -> Mapping[int, int]:
        """The states that were worked out, by draft."""
        return self._state_of

    def state(self, draft_state: int, shape: int, usage_keys: Sequence[Hashable]) -> int:
        """The state of a draft."""
        if len(self._state_of) >= Numbers.LIMIT:
            self._state_of.clear()
            self._shape_of.clear()
        state = self._state_of[draft_state] = self._states.of((shape, tuple(usage_keys)))
        return state

    def _look_of(self, pool: PoolOffer) -> Hashable:
        contents = tuple([(self._sameness.number(one.content), one.skips) for one in pool.slices])
        return (contents, pool.layout.declared, pool.here)


def _draft_of(pool: PoolOffer) -> Hashable:
    contents = tuple([(one.content.ident, one.skips) for one in pool.slices])
    return (contents, pool.layout.declared, pool.here)
