"""Which model is taken where nobody named one. Source: protocol.md, Options; README.md says the same."""

from pathlib import Path

import pytest

from sidecar.agent.models import DEFAULT_MODELS, default_model

OPENAI = "openai/gpt-4.1-mini"
ANTHROPIC = "anthropic/claude-haiku-4-5"

KEY = "sk"
URL = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("environment", "model"),
    [
        ({}, None),
        ({"OPENAI_API_KEY": ""}, None),
        ({"OPENAI_API_KEY": KEY}, OPENAI),
        ({"ANTHROPIC_API_KEY": KEY}, ANTHROPIC),
        ({"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}, OPENAI),
        ({"OPENAI_MODEL": "o", "OPENAI_API_KEY": KEY}, "openai/o"),
        ({"ANTHROPIC_MODEL": "a", "ANTHROPIC_API_KEY": KEY}, "anthropic/a"),
        ({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": URL}, None),
        ({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": URL, "ANTHROPIC_API_KEY": KEY}, ANTHROPIC),
        ({"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": URL}, None),
        ({"ANTHROPIC_MODEL": "a", "ANTHROPIC_BASE_URL": URL}, "anthropic/a"),
    ],
)
def test_the_first_provider_whose_variables_say_how_to_reach_it_is_taken(
    environment: dict[str, str], model: str | None
) -> None:
    assert default_model(environment) == model


@pytest.mark.parametrize("document", ["README.md", "protocol.md"])
def test_the_documents_name_the_models(document: str) -> None:
    text = (Path(__file__).parents[2] / document).read_text(encoding="utf-8")
    assert all(f"{provider}/{model}" in text for provider, model in DEFAULT_MODELS.items())
