"""The `oauth` field of a server's entry: what the user says about signing in. Cheap to import."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from attrs import field, frozen

from sidecar.protocol.codec import DecodeError, decode
from sidecar.protocol.errors import ConfigurationError
from sidecar.protocol.values import JsonObject

GRANTS = ("authorization_code", "client_credentials", "jwt_bearer", "token_exchange")
"""How a token is come by, in OAuth's own words: by a person in a browser, by a secret or key of the client, by a
JWT of the workload, or by a person's ID token that the identity provider exchanges."""

SIGNING_ALGORITHMS = ("ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA")

_URN = "urn:ietf:params:oauth:grant-type:"
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


@frozen(kw_only=True)
class OAuthOptions:
    """What is not said is found out: from the server's metadata, by registration, by asking a person.

    `redirect_uri` and `callback_port` are for clients that were registered with one exact loopback address.
    `assertion` is a workload's JWT, `id_token` that of a person; both may lie in a file that is read each time.
    """

    grant_type: str = "authorization_code"
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    client_metadata_url: str | None = None
    scopes: str | tuple[str, ...] | None = None
    redirect_uri: str | None = None
    callback_port: int | None = None
    private_key_pem: str | None = field(default=None, repr=False)
    signing_algorithm: str | None = None
    key_id: str | None = None
    assertion: str | None = field(default=None, repr=False)
    assertion_file: str | None = None
    idp_issuer: str | None = None
    idp_token_endpoint: str | None = None
    idp_client_id: str | None = None
    idp_client_secret: str | None = field(default=None, repr=False)
    id_token: str | None = field(default=None, repr=False)
    id_token_file: str | None = None

    @property
    def grant(self) -> str:
        """One of GRANTS, however it was spelled; the full name of RFC 7523 or RFC 8693, too."""
        return self.grant_type.removeprefix(_URN).replace("-", "_")

    @property
    def wanted_scopes(self) -> tuple[str, ...]:
        """What the user wants to ask for; empty where that is left to the server."""
        scopes = self.scopes.split() if isinstance(self.scopes, str) else self.scopes or ()
        return tuple(dict.fromkeys(scopes))


def read_options(raw: JsonObject | None, path: str) -> OAuthOptions:
    """The `oauth` field of an entry as it was written; absent, nothing is said. Raises ConfigurationError."""
    try:
        options = decode(raw or {}, OAuthOptions, path=path)
    except DecodeError as error:
        raise ConfigurationError(str(error), path=error.path) from None
    check_options(options, path)
    return options


def check_options(options: OAuthOptions, path: str) -> None:
    """Raises ConfigurationError where an option is wrong, or where one is missing for the grant."""
    for name, fault in _faults(options):
        raise ConfigurationError(f"{path}.{name}: {fault}", path=f"{path}.{name}")


def _faults(options: OAuthOptions) -> Iterator[tuple[str, str]]:
    if options.grant not in GRANTS:
        yield "grantType", f"must be one of {', '.join(GRANTS)}, not {options.grant_type!r}"
    if options.signing_algorithm not in (None, *SIGNING_ALGORITHMS):
        yield "signingAlgorithm", f"must be one of {', '.join(SIGNING_ALGORITHMS)}"
    yield from _address_faults(options)
    yield from _faults_of_grant(options)


def _address_faults(options: OAuthOptions) -> Iterator[tuple[str, str]]:
    if options.client_metadata_url is not None and not _is_document(options.client_metadata_url):
        yield "clientMetadataUrl", "must be an https URL with a path"
    if options.redirect_uri is not None and not _is_loopback_uri(options.redirect_uri):
        yield "redirectUri", "must be http://127.0.0.1:PORT/PATH or http://localhost:PORT/PATH"
    if options.callback_port is not None and not 0 < options.callback_port < 65536:
        yield "callbackPort", "must be a port, 1 to 65535"


def _faults_of_grant(options: OAuthOptions) -> Iterator[tuple[str, str]]:
    match options.grant:
        case "client_credentials":
            if options.client_id is None:
                yield "clientId", "is required for client_credentials"
            if options.client_secret is None and options.private_key_pem is None:
                yield "clientSecret", "is required for client_credentials, or a privateKeyPem"
        case "jwt_bearer" if options.assertion is None and options.assertion_file is None:
            yield "assertion", "is required for jwt_bearer, or an assertionFile"
        case "token_exchange":
            if options.client_id is None:
                yield "clientId", "is required for token_exchange"
            if options.id_token is None and options.id_token_file is None:
                yield "idToken", "is required for token_exchange, or an idTokenFile"
            if options.idp_token_endpoint is None and options.idp_issuer is None:
                yield "idpTokenEndpoint", "is required for token_exchange, or an idpIssuer"


def _is_document(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "https" and bool(parts.hostname) and parts.path not in ("", "/")


def _is_loopback_uri(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        return parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS and parts.port is not None
    except ValueError:
        return False
