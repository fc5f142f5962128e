"""Which model `ask` takes when nobody has named one, and what it says when there is none. Source: own choice."""

import asyncio
import sys

from tests.harness.host import clean_environment
from tests.harness.model_server import ScriptedModel, says

NOWHERE = "http://127.0.0.1:9"
"""Where nothing listens."""


async def ask(*arguments: str, **environment: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "sidecar",
        "ask",
        *arguments,
        env={**clean_environment(), **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        out, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), errors.decode()


async def test_a_local_model_that_answers_is_used_and_named() -> None:
    async with ScriptedModel(says("Hello."), models=("qwen3",)) as model:
        status, out, errors = await ask("hi", OLLAMA_HOST=model.base_url.removesuffix("/v1"))
    assert (status, out) == (0, "Hello.\n")
    assert "ollama/qwen3" in errors
    assert model.requests[0].body["model"] == "qwen3"


async def test_a_key_of_openai_is_enough() -> None:
    async with ScriptedModel(says("Hello."), api_key="sk-test") as model:
        status, out, _ = await ask(
            "hi", OPENAI_API_KEY="sk-test", OPENAI_BASE_URL=model.base_url, OPENAI_MODEL="m"
        )
    assert (status, out) == (0, "Hello.\n")
    assert model.requests[0].body["model"] == "m"


async def test_without_any_model_the_error_is_one_line_that_says_what_to_set() -> None:
    status, out, errors = await ask("hi", OLLAMA_HOST=NOWHERE)
    assert (status, out) == (2, "")
    assert "OPENAI_API_KEY" in errors
    assert len(errors.strip().splitlines()) == 1
