"""The environment of these tests says nothing about providers, proxies or certificates."""

import os

import pytest


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unsets what a developer's machine may have set."""
    for name in os.environ:
        if name.lower().endswith("_proxy") or name.startswith(("OPENAI_", "ANTHROPIC_", "OLLAMA_", "SSL_CERT_")):
            monkeypatch.delenv(name)
