"""The condition `Permitted` names everything that is missing, whatever else is missing too."""

from dovetail.core.conditions import Condition
from dovetail.core.restrictions import UNRESTRICTED, MissingRight, Restrictions

PATCH = MissingRight("patch pods", "remove the scheduling gate")
CREATE = MissingRight("create events", "tell owners of pods")


def test_without_restrictions_it_is_true() -> None:
    """Nothing is missing, and the message says what that means."""
    assert UNRESTRICTED.condition == Condition(
        "Permitted", "True", "AllGranted", "no right is missing, and no feature gate was found off"
    )


def test_each_right_and_each_gate_is_named() -> None:
    """A missing right comes first, since it can be mended at once."""
    found = Restrictions((PATCH, CREATE), ("DRADeviceTaints",)).condition

    assert (found.status, found.reason) == ("False", "RightMissing")
    assert found.message == (
        "missing right to patch pods, needed to remove the scheduling gate; "
        "missing right to create events, needed to tell owners of pods; "
        "feature gate DRADeviceTaints is off: the API server drops its fields, and Dovetail does without them"
    )


def test_gates_alone_have_a_reason_of_their_own() -> None:
    """No right is to blame."""
    assert Restrictions(gates=("DRADeviceTaints",)).condition.reason == "FeatureGateOff"
