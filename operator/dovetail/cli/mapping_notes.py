"""What the status of the mappings in a plan's input would say, as far as it is no good news."""

from collections.abc import Iterator

from dovetail.core.cel import Memory
from dovetail.core.conditions import Condition
from dovetail.core.mapping_status import conditions_of, coverage, idle_rules, publishers
from dovetail.core.world import World


def mapping_notes(world: World) -> list[str]:
    """One note for each DerivedAttribute that is not ready, or whose rules and devices do not meet."""
    return [
        f"DerivedAttribute {name!r}: {condition.type} is {condition.status}: {condition.message}."
        for name in sorted(world.mappings.objects)
        for condition in _conditions(world, name)
    ]


def _conditions(world: World, name: str) -> Iterator[Condition]:
    """Those that say more than that all is well; of one that is not ready, nothing else counts."""
    compiled, memory = world.mappings.objects[name], Memory()
    devices = tuple(world.inventory.devices())
    idle = idle_rules(compiled, devices, memory)
    ready, covered, *others = conditions_of(
        name,
        world.mappings,
        coverage(compiled, devices, memory),
        idle=idle,
        published_by=publishers(compiled.attribute, devices),
    )
    if ready.status != "True":
        yield ready
        return
    if covered.status != "True" or idle:
        yield covered
    yield from others
