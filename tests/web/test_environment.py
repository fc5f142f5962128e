"""Certificates of the environment. Source: own choice."""

import ssl
from pathlib import Path

import certifi
import pytest

from sidecar.protocol.errors import ConfigurationError
from sidecar.web.environment import trusted_certificates


def test_certificates_are_read_once_for_all_who_have_them_and_anew_when_they_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "own.pem"
    file.write_bytes(Path(certifi.where()).read_bytes())
    default = trusted_certificates("https://a/", None)
    assert trusted_certificates("https://b/", None) is default
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    own = trusted_certificates("https://a/", None)
    assert own is not default
    assert trusted_certificates("https://b/", None) is own
    file.write_bytes(b"nothing\n" * 2)
    with pytest.raises(ConfigurationError, match="SSL_CERT_FILE"):
        trusted_certificates("https://a/", None)


def test_where_no_tls_happens_nothing_is_read_and_nobody_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    context = trusted_certificates("http://a/", None)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.get_ca_certs() == []
