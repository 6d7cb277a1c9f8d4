"""What is noted about pods: who waits, for what, and nothing about those that are gone."""

import pytest

from dovetail.embedded import EmbeddedCluster
from dovetail.services import serving
from dovetail.services.notebook import Notebook
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import Body, aligned, claim, pairs, pod, waits_for

P = ("default", "p")


def body(uid: str = "1") -> Body:
    """A pod, as far as the notebook looks."""
    return {"metadata": {"uid": uid}}


def test_a_reason_is_news_once() -> None:
    """Until the pod has gone on meanwhile."""
    book = Notebook()
    notes = book.about(P, body())

    news = [notes.wait("A"), notes.wait("A"), notes.wait("B")]
    notes.go_on()
    news.append(notes.wait("B"))

    assert news == [True, False, True, True]
    assert dict(book.waiting) == {P: "B"}


@pytest.mark.parametrize("other", [False, True])
def test_who_is_still_at_work_on_a_pod_that_went_notes_in_the_air(other: bool) -> None:
    """Whether the pod is just gone, or another one has its name now."""
    book = Notebook()
    notes = book.about(P, body())
    book.forget(P) if not other else book.about(P, body("2"))

    notes.wait("NothingFits")

    assert not book.waiting


async def test_a_pod_that_is_done_waits_no_longer(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Its last reason is not counted any more (`dovetail_waiting_pods`)."""
    cluster.load(*pairs())
    context = await operator(resync_seconds=600)
    cluster.create(claim("large", aligned("gpu", "nic", gpu=5)))
    cluster.create(pod(claim="large"))
    await cluster.wait_for("Pod", waits_for())

    cluster.patch("Pod", "p", {"status": {"phase": "Failed"}}, status=True)
    cluster.create(pod("later", claim="large"))
    await cluster.wait_for("Pod", lambda each: each["metadata"]["name"] == "later" and waits_for()(each))

    assert context.operation is not None
    metrics = context.operation.metrics.registry
    counts = [
        sample.value
        for metric in metrics.collect()
        for sample in metric.samples
        if sample.name == "dovetail_waiting_pods"
    ]
    assert sum(counts) == 1


async def test_claims_that_stay_missing_are_told_as_an_event(
    bare: EmbeddedCluster, operator: OperatorStarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the first seconds, when it is no news; then once, on the pod."""
    monkeypatch.setattr(serving, "CLAIMS_LATE_SECONDS", 0.3)
    bare.load(*pairs())
    await operator(claim_generation="never")

    bare.create(pod(claim="missing"))

    event = await bare.wait_for("Event", lambda each: each["reason"] == "ClaimsNotCreated")
    assert event["involvedObject"]["name"] == "p"
