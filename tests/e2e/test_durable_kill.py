"""A sidecar that is killed loses nothing that its host has seen, and two can work on one store.

Source: protocol.md, "Durability". `tests/bench/bench_store.py` does the same many times more.
"""

import random
from pathlib import Path

from tests.harness.killing import KillTest, answering
from tests.harness.model_server import ScriptedModel
from tests.harness.sharing import share_a_store

ROUNDS = 6

SEED = 20


async def test_nothing_that_a_host_has_seen_is_lost_when_the_sidecar_is_killed(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    async with ScriptedModel(answer=answering(chance)) as model:
        test = KillTest(tmp_path, model, chance)
        for _ in range(ROUNDS):
            await test.round()
        await test.last_look()
    assert test.tally.losses == []
    assert test.tally.events_seen > ROUNDS


async def test_two_sidecars_on_one_store_are_not_in_each_others_way(tmp_path: Path) -> None:
    shared = await share_a_store(tmp_path, runs_each=4, at_once=2)
    assert shared.errors == []
    assert shared.losses == []
    assert shared.sessions == 8
