"""What costs too much is ended within the process, and remembered by what it asks for."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import pytest

from dovetail.api.kinds import CLAIM, CLASS, NODE, POD, SLICE, Kind
from dovetail.core.decisions import Cut, Place
from dovetail.core.features import Features
from dovetail.core.planner import PlanSettings
from dovetail.core.reasons import Reason
from dovetail.errors import TooCostly
from dovetail.services.costs import Limits, Restraint
from dovetail.services.journal import SLOTS, Cost, Journal, content_of
from dovetail.services.mind import Mind
from dovetail.services.picture import Change, key_of
from dovetail.services.watchdog import Watchdog
from tests.operator.hostile import HostileWorld, grow, loop
from tests.operator.worlds import Body, aligned, claim, pairs, pod

SHORT = Limits(1_000_000, 0.2, 64.0)
ONE, OTHER = content_of("one"), content_of("other")


class Clock:
    """The time of day that a test decides."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """The time of day."""
    return Clock()


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    """A watchdog that ends with the test."""
    dog = Watchdog()
    yield dog
    dog.close()


# -- ending ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("work", "reason"), [(loop, "too long"), (grow, "too much memory")])
def test_python_that_does_not_end_is_ended(watchdog: Watchdog, work: Callable[[], None], reason: str) -> None:
    """A loop at its time limit, a growing one at its memory limit; the error says which."""
    seconds = 0.2 if work is loop else 60
    with pytest.raises(TooCostly, match=reason):
        watchdog.guard(work, seconds=seconds, mebibytes=64)


def test_an_end_that_gets_lost_is_tried_again(watchdog: Watchdog) -> None:
    """Whoever catches everything once is ended the second time."""

    def stubborn() -> None:
        try:
            loop()
        except BaseException:  # noqa: BLE001 - what this is about
            loop()

    with pytest.raises(TooCostly):
        watchdog.guard(stubborn, seconds=0.1, mebibytes=64)


def test_no_end_comes_after_the_work_is_over(watchdog: Watchdog) -> None:
    """Work that takes just as long as it may is either done or ended; what follows is left in peace."""
    done = ended = 0
    for _ in range(150):
        began = monotonic()

        def work(until: float = began + 0.05) -> bool:
            while monotonic() < until:
                pass
            return True

        try:
            done += watchdog.guard(work, seconds=0.05, mebibytes=64)
        except TooCostly:
            ended += 1
        sum(i for i in range(500))
    assert done + ended == 150


def test_memory_that_is_refused_is_a_cost(watchdog: Watchdog) -> None:
    """What no process has room for is answered as what grows too much."""
    with pytest.raises(TooCostly):
        watchdog.guard(lambda: bytearray(1 << 60), seconds=5, mebibytes=64)


def test_another_thread_is_not_ended(watchdog: Watchdog) -> None:
    """Only the thread that works for too long gets the exception."""
    stop, beats = threading.Event(), []

    def beat() -> None:
        while not stop.wait(0.01):
            beats.append(monotonic())

    bystander = threading.Thread(target=beat)
    bystander.start()
    with pytest.raises(TooCostly):
        watchdog.guard(loop, seconds=0.2, mebibytes=64)
    before = len(beats)
    while len(beats) == before:
        pass
    stop.set()
    bystander.join()


# -- remembering -----------------------------------------------------------------------------------


def test_a_content_that_was_ended_is_left_alone_for_longer_each_time(clock: Clock) -> None:
    """5, 10, 20 … up to 300 seconds; another content is not concerned, and success is forgiveness."""
    journal = Journal.open("", clock=clock)
    pauses = [journal.note(ONE, Cost.STOPPED) for _ in range(9)]
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    assert (journal.rest(ONE), journal.rest(OTHER)) == (300, 0)
    clock.now += 300
    assert journal.rest(ONE) == 0
    journal.forget(ONE)
    assert journal.note(ONE, Cost.STOPPED) == 5


def test_it_is_remembered_in_the_next_process(clock: Clock, tmp_path: Path) -> None:
    """A directory keeps it: also that a budget ran out, which the process itself need not be told."""
    first = Journal.open(str(tmp_path), clock=clock)
    first.note(ONE, Cost.KILLED)
    first.note(OTHER, Cost.CUT)
    assert (first.rest(ONE), first.rest(OTHER)) == (60, 0)
    second = Journal.open(str(tmp_path), clock=clock)
    assert (second.rest(ONE), second.rest(OTHER)) == (60, 5)


def test_what_the_process_itself_cut_is_left_to_whoever_serves_the_pod(clock: Clock, tmp_path: Path) -> None:
    """Also where a process before had cut it: what helps the pod brings it back before its time."""
    Journal.open(str(tmp_path), clock=clock).note(ONE, Cost.CUT)
    journal = Journal.open(str(tmp_path), clock=clock)
    clock.now += journal.rest(ONE)
    journal.note(ONE, Cost.CUT)
    assert journal.rest(ONE) == 0


def test_what_was_under_way_for_long_when_the_process_ended_is_why(clock: Clock, tmp_path: Path) -> None:
    """A kill in the midst of a decision that had been watched for a while is held against its content."""
    before = Journal.open(str(tmp_path), clock=clock)
    before.begin(ONE, 1.0)
    before.watched(0.6)
    assert Journal.open(str(tmp_path), clock=clock).rest(ONE) == 60


def test_a_kill_in_a_short_decision_is_held_against_nobody(clock: Clock, tmp_path: Path) -> None:
    """A crash hits something at random."""
    before = Journal.open(str(tmp_path), clock=clock)
    before.begin(ONE, 1.0)
    assert Journal.open(str(tmp_path), clock=clock).rest(ONE) == 0


def test_the_journal_is_bounded_and_forgets(clock: Clock, tmp_path: Path) -> None:
    """A thousand contents are kept, those that may be tried last; an hour after that they are forgotten."""
    journal = Journal.open(str(tmp_path), clock=clock)
    for number in range(SLOTS + 10):
        clock.now += 0.001
        journal.note(content_of(str(number)), Cost.STOPPED)
    assert journal.rest(content_of("0")) == 0
    assert journal.rest(content_of(str(SLOTS + 9))) > 0
    size = (tmp_path / "decisions").stat().st_size
    assert size < 100_000
    clock.now += 4000
    assert Journal.open(str(tmp_path), clock=clock).note(content_of("500"), Cost.STOPPED) == 5


@pytest.mark.parametrize("found", [b"", b"\xff" * 50_000, b"dovetail journal 1" + b"\xff" * 60_000])
def test_a_file_that_is_no_journal_stops_nothing(tmp_path: Path, found: bytes) -> None:
    """Whatever lies in the directory, the journal begins anew."""
    (tmp_path / "decisions").write_bytes(found)
    journal = Journal.open(str(tmp_path))
    journal.note(ONE, Cost.STOPPED)
    assert journal.rest(ONE) > 0


def test_a_directory_that_is_not_there_stops_nothing(tmp_path: Path) -> None:
    """What is remembered then lives as long as the process."""
    journal = Journal.open(str(tmp_path / "missing"))
    journal.note(ONE, Cost.STOPPED)
    assert journal.rest(ONE) > 0


# -- deciding --------------------------------------------------------------------------------------


def bombed(name: str, bomb: str, *, claim: str) -> Body:
    """A pod that a decision does not come back from."""
    body = pod(name, claim=claim)
    body["metadata"] |= {"uid": name, "labels": {"bomb": bomb}}
    return body


def told(mind: Mind, *bodies: Body) -> None:
    """Show the mind these objects."""
    kinds: dict[str, Kind] = {kind.name: kind for kind in (CLAIM, CLASS, NODE, POD, SLICE)}
    for body in bodies:
        if kind := kinds.get(body["kind"]):
            body["metadata"].setdefault("uid", body["metadata"]["name"])
            mind.post(Change(kind, key_of(body), None, body))


@pytest.fixture
async def mind() -> Iterator[Mind]:  # type: ignore[misc]
    """A mind on a node with a pair, two equal claims, and one that asks for something else."""
    made = Mind(
        HostileWorld(Features()),
        plan=PlanSettings(),
        limits=SHORT,
        now=lambda: "",
        restraint=Restraint(Journal.open("")),
    )
    told(made, *pairs(), claim("bad"), claim("same"), claim("good", aligned("gpu")))
    yield made
    made.close()


@pytest.mark.parametrize("bomb", ["loop", "grow"])
async def test_the_next_pod_is_served(mind: Mind, bomb: str) -> None:
    """A decision that escapes its budget is ended, says so, and the next pod gets its devices."""
    told(mind, bombed("hostile", bomb, claim="bad"), pod("honest", claim="good"))
    ended = await mind.decide(("default", "hostile"), ())
    served = await mind.decide(("default", "honest"), ())
    assert isinstance(ended.decision, Cut)
    assert ended.decision.reason is Reason.COSTS_TOO_MUCH
    assert isinstance(served.decision, Place)


async def test_equal_claims_of_the_namespace_are_not_walked_into_again(mind: Mind) -> None:
    """Another pod with a claim that asks for the same is told at once."""
    told(mind, bombed("hostile", "loop", claim="bad"), pod("alike", claim="same"))
    await mind.decide(("default", "hostile"), ())
    again = await mind.decide(("default", "hostile"), ())
    alike = await mind.decide(("default", "alike"), ())
    for verdict in (again, alike):
        assert isinstance(verdict.decision, Cut)
        assert (verdict.decision.reason, verdict.seconds) == (Reason.COSTS_TOO_MUCH, 0)


async def test_an_equal_claim_of_another_namespace_is_served(mind: Mind) -> None:
    """Nobody blocks others by asking for what they ask for."""
    elsewhere, theirs = claim("same"), pod("theirs", claim="same")
    for body in (elsewhere, theirs):
        body["metadata"] |= {"namespace": "other", "uid": "theirs"}
    told(mind, bombed("hostile", "loop", claim="bad"), elsewhere, theirs)
    await mind.decide(("default", "hostile"), ())
    verdict = await mind.decide(("other", "theirs"), ())
    assert isinstance(verdict.decision, Place)


async def test_a_claim_that_changed_is_tried_at_once(mind: Mind) -> None:
    """The same pod with another claim is no longer what cost too much."""
    told(mind, bombed("hostile", "loop", claim="bad"))
    await mind.decide(("default", "hostile"), ())
    told(mind, claim("bad", aligned("nic")), pod("hostile", claim="bad"))
    verdict = await mind.decide(("default", "hostile"), ())
    assert isinstance(verdict.decision, Place)


async def test_a_question_that_does_not_end_is_ended(mind: Mind) -> None:
    """Whoever asks gets an error, and decisions go on."""
    with pytest.raises(TooCostly):
        await mind.ask(lambda _: loop(), seconds=0.2)
    told(mind, pod("honest", claim="good"))
    assert isinstance((await mind.decide(("default", "honest"), ())).decision, Place)


async def test_an_object_that_ended_the_process_is_not_read_again(tmp_path: Path) -> None:
    """The same version of it counts as malformed; the next version is read."""
    from dovetail.services.costs import content_of_object

    heavy = claim("heavy")
    heavy["metadata"] |= {"uid": "h", "resourceVersion": "7"}
    journal = Journal.open(str(tmp_path))
    journal.note(content_of_object("ResourceClaim", heavy), Cost.KILLED)
    world = HostileWorld(Features())
    mind = Mind(world, plan=PlanSettings(), limits=SHORT, now=lambda: "", restraint=Restraint(journal))
    told(mind, heavy)
    refused = await mind.ask(lambda seen: dict(seen.problems))
    newer = heavy | {"metadata": heavy["metadata"] | {"resourceVersion": "8"}}
    told(mind, newer)
    read = await mind.ask(lambda seen: dict(seen.problems))
    mind.close()
    assert [problem.reason for problem in refused.values()] == ["reading it costs too much"]
    assert read == {}
