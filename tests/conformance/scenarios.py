"""Which scenarios of the official conformance suites are run, and what is not expected of this client.

The scenarios of 0.2.0-alpha.12 are those that its own `list` names for a revision, and those that no revision has
(extensions, and what 2025-03-26 did otherwise).
"""

from attrs import field, frozen

FIRST_REVISIONS = ("auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback")

SIGN_IN = (
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
)
OFFLINE_ACCESS = ("auth/resource-mismatch", "auth/offline-access-scope", "auth/offline-access-not-supported")
CLIENT_CREDENTIALS = ("auth/client-credentials-jwt", "auth/client-credentials-basic")
HANDSHAKE = ("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry")


@frozen(kw_only=True)
class Suite:
    """One release of the suite, at one revision of MCP where it asks for one.

    `not_offered` are scenarios that test what this client does not offer, with the reason.
    """

    package: str
    spec_version: str | None = None
    scenarios: tuple[str, ...]
    not_offered: dict[str, str] = field(factory=dict)


_NO_SKILLS = "skills over MCP (SEP-2640, an extension) are not offered by this client"
_ALPHA = "conformance-0.2.0-alpha.12"

SUITES: dict[str, Suite] = {
    "0.1.16": Suite(
        package="conformance-0.1.16",
        scenarios=(
            *HANDSHAKE,
            *SIGN_IN,
            *FIRST_REVISIONS,
            *OFFLINE_ACCESS,
            *CLIENT_CREDENTIALS,
            "auth/cross-app-access-complete-flow",
        ),
    ),
    "0.2.0-alpha.12 at 2025-11-25": Suite(
        package=_ALPHA,
        spec_version="2025-11-25",
        scenarios=(*HANDSHAKE, *SIGN_IN, "json-schema-2020-12-preservation"),
    ),
    "0.2.0-alpha.12 at 2026-07-28": Suite(
        package=_ALPHA,
        spec_version="2026-07-28",
        scenarios=(
            "tools_call",
            "request-metadata",
            *SIGN_IN,
            *OFFLINE_ACCESS,
            "auth/authorization-server-migration",
            "auth/iss-supported",
            "auth/iss-not-advertised",
            "auth/iss-supported-missing",
            "auth/iss-wrong-issuer",
            "auth/iss-unexpected",
            "auth/iss-normalized",
            "auth/metadata-issuer-mismatch",
            "sep-2322-client-request-state",
            "http-standard-headers",
            "http-custom-headers",
            "http-invalid-tool-headers",
            "json-schema-ref-no-deref",
            "json-schema-2020-12-preservation",
        ),
    ),
    "0.2.0-alpha.12, of no revision": Suite(
        package=_ALPHA,
        scenarios=(
            *FIRST_REVISIONS,
            *CLIENT_CREDENTIALS,
            "auth/enterprise-managed-authorization",
            "auth/dpop",
            "auth/dpop-nonce",
            "auth/wif-jwt-bearer",
            "sep-2640-client-no-prefetch",
            "sep-2640-client-verify-digest",
            "sep-2640-client-verify-size",
            "sep-2640-client-verify-frontmatter",
        ),
        not_offered={
            "sep-2640-client-no-prefetch": _NO_SKILLS,
            "sep-2640-client-verify-digest": _NO_SKILLS,
            "sep-2640-client-verify-size": _NO_SKILLS,
            "sep-2640-client-verify-frontmatter": _NO_SKILLS,
        },
    ),
}
