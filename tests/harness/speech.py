"""A model that talks faster than anybody reads, for tests of what shows it."""

from attrs import evolve

from tests.harness.model_server import Reply, Stall, delta, event, says


def talks_fast() -> Reply:
    """Ten deltas every 10 ms for 30 s at most: 1,000 a second, Markdown among them."""
    steps: list[bytes | Stall] = []
    for tick in range(3000):
        words = (f"**word** {tick * 10 + count} " + "\n\n" * (count == 9) for count in range(10))
        steps += [b"".join(event(delta(content=word)) for word in words), Stall(0.01)]
    return evolve(says("That is all."), cut_after=1, then=tuple(steps))
