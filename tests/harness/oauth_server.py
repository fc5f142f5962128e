"""A real authorization server, and a real MCP-like server that it guards, with a switch for each case.

The authorization server checks what it is sent as a strict one does: registered clients, exact redirect addresses,
PKCE, codes and refresh tokens that are good for once, how a client says who it is, DPoP proofs.
"""

import base64
import hashlib
import itertools
import time
from typing import Any
from urllib.parse import unquote_plus, urlencode

import jwt
from attrs import define

from tests.harness.http_site import HttpSite, Request, Response

OAUTH_METADATA = "/.well-known/oauth-authorization-server"
OPENID_METADATA = "/.well-known/openid-configuration"
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"

Json = dict[str, Any]


@define
class IssuedToken:
    """What a token is good for."""

    scopes: tuple[str, ...]
    client_id: str
    resource: str | None = None
    key_thumbprint: str | None = None
    is_revoked: bool = False


@define
class _Code:
    client_id: str
    redirect_uri: str
    challenge: str
    scopes: tuple[str, ...]
    resource: str | None


class AuthorizationServer(HttpSite):
    """Switches are attributes; what it saw is in `registrations`, `authorizations` and `token_requests`.

    `metadata` is laid over the metadata that is right; a value of None takes a field out.
    """

    def __init__(self, prefix: str = "", *, metadata_at: str = OAUTH_METADATA) -> None:
        super().__init__()
        self.prefix = prefix
        self.metadata_at = metadata_at
        self.metadata: Json = {}
        self.clients: dict[str, Json] = {}
        self.registered_as: Json = {}
        self.refuses_registration: Response | None = None
        self.answers_with: Json = {}
        self.sends_issuer: str | None = "correct"
        self.token_answers: list[Response] = []
        self.expires_in: Any = 3600
        self.gives_refresh = True
        self.granted_scopes: tuple[str, ...] | None = None
        self.nonce: str | None = None
        self.binds_tokens = False
        self.assertion_key: Any = None
        self.registrations: list[Json] = []
        self.authorizations: list[dict[str, str]] = []
        self.token_requests: list[Request] = []
        self.tokens: dict[str, IssuedToken] = {}
        self._codes: dict[str, _Code] = {}
        self.refresh_tokens: dict[str, IssuedToken] = {}
        self._numbers = itertools.count(1)
        self._proofs: set[str] = set()
        self.routes |= {
            ("GET", metadata_at): self._metadata,
            ("GET", f"{prefix}/authorize"): self._authorize,
            ("POST", f"{prefix}/token"): self._token,
            ("POST", f"{prefix}/register"): self._register,
        }

    @property
    def issuer(self) -> str:
        return f"{self.origin}{self.prefix}"

    @property
    def forms(self) -> list[dict[str, str]]:
        """The fields of every token request."""
        return [request.form for request in self.token_requests]

    def revoke_all(self) -> None:
        """Makes every access token useless."""
        for token in self.tokens.values():
            token.is_revoked = True

    def forget_refresh_tokens(self) -> None:
        """Makes every refresh token useless."""
        self.refresh_tokens.clear()

    def accepts(self, token: str, *, scopes: tuple[str, ...] = ()) -> bool:
        """Whether a token is good."""
        known = self.tokens.get(token)
        return known is not None and not known.is_revoked and set(scopes) <= set(known.scopes)

    # Endpoints ------------------------------------------------------------------------------------------

    def _metadata(self, request: Request) -> Response:
        right = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
        }
        merged = {**right, **self.metadata}
        return Response(200, {name: value for name, value in merged.items() if value is not None})

    def _register(self, request: Request) -> Response:
        if self.refuses_registration is not None:
            return self.refuses_registration
        self.registrations.append(request.json)
        client_id = f"registered-{next(self._numbers)}"
        client = {**request.json, "client_id": client_id, **self.registered_as}
        self.clients[client_id] = client
        return Response(201, client)

    def _authorize(self, request: Request) -> Response:
        asked = request.query
        self.authorizations.append(asked)
        client = self._client(asked["client_id"])
        if client is None or asked["redirect_uri"] not in client.get("redirect_uris", [asked["redirect_uri"]]):
            return Response(400, "unknown client, or an address that was not registered")
        if asked["response_type"] != "code" or asked["code_challenge_method"] != "S256":
            return Response(400, "bad request")
        code = f"code-{next(self._numbers)}"
        scopes = tuple(asked.get("scope", "").split())
        self._codes[code] = _Code(
            asked["client_id"], asked["redirect_uri"], asked["code_challenge"], scopes, asked.get("resource")
        )
        answer: Json = {"code": code, "state": asked["state"], "iss": self._issuer_sent(), **self.answers_with}
        query = urlencode({name: value for name, value in answer.items() if value is not None})
        return Response(302, "", {"location": f"{asked['redirect_uri']}?{query}"})

    def _issuer_sent(self) -> str | None:
        return {"correct": self.issuer, "normalized": f"{self.issuer}/"}.get(
            self.sends_issuer or "", self.sends_issuer
        )

    def _token(self, request: Request) -> Response:
        self.token_requests.append(request)
        if self.token_answers:
            return self.token_answers.pop(0)
        form = request.form
        client_id = self._authenticated(request)
        if client_id is None:
            return Response(401, {"error": "invalid_client", "error_description": "who are you?"})
        proof = request.headers.get("dpop")
        thumbprint = None
        if proof is not None:
            claims, thumbprint = self._checked(proof, "POST", f"{self.issuer}/token")
            if self.nonce is not None and claims.get("nonce") != self.nonce:
                return Response(400, {"error": "use_dpop_nonce"}, {"DPoP-Nonce": self.nonce})
        match form.get("grant_type"):
            case "authorization_code":
                return self._for_code(form, client_id, thumbprint)
            case "refresh_token":
                return self._for_refresh(form, client_id, thumbprint)
            case "client_credentials":
                return self._issued(self._plain(form, client_id, thumbprint), refresh=False)
            case grant if grant == JWT_BEARER:
                return self._for_assertion(form, client_id)
        return Response(400, {"error": "unsupported_grant_type"})

    def _for_code(self, form: dict[str, str], client_id: str, thumbprint: str | None) -> Response:
        code = self._codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if code is None or (client_id, form["redirect_uri"], challenge, form.get("resource")) != (
            code.client_id,
            code.redirect_uri,
            code.challenge,
            code.resource,
        ):
            return Response(400, {"error": "invalid_grant"})
        scopes = code.scopes if self.granted_scopes is None else self.granted_scopes
        return self._issued(IssuedToken(scopes, client_id, code.resource, thumbprint))

    def _for_refresh(self, form: dict[str, str], client_id: str, thumbprint: str | None) -> Response:
        old = self.refresh_tokens.pop(form["refresh_token"], None)
        if old is None or (old.client_id, old.resource) != (client_id, form.get("resource")):
            return Response(400, {"error": "invalid_grant"})
        if old.key_thumbprint != thumbprint:
            return Response(400, {"error": "invalid_dpop_proof"})
        return self._issued(IssuedToken(old.scopes, client_id, old.resource, thumbprint))

    def _for_assertion(self, form: dict[str, str], client_id: str) -> Response:
        try:
            jwt.decode(form["assertion"], self.assertion_key, ["ES256"], audience=self.issuer)
        except jwt.PyJWTError as error:
            return Response(400, {"error": "invalid_grant", "error_description": str(error)})
        return self._issued(self._plain(form, client_id, None), refresh=False)

    def _plain(self, form: dict[str, str], client_id: str, thumbprint: str | None) -> IssuedToken:
        return IssuedToken(tuple(form.get("scope", "").split()), client_id, form.get("resource"), thumbprint)

    def _issued(self, token: IssuedToken, *, refresh: bool = True) -> Response:
        name = f"access-{next(self._numbers)}"
        is_bound = self.binds_tokens and token.key_thumbprint is not None
        token.key_thumbprint = token.key_thumbprint if is_bound else None
        self.tokens[name] = token
        answer: Json = {"access_token": name, "token_type": "DPoP" if is_bound else "Bearer"}
        if self.expires_in is not None:
            answer["expires_in"] = self.expires_in
        if token.scopes:
            answer["scope"] = " ".join(token.scopes)
        if refresh and self.gives_refresh:
            answer["refresh_token"] = f"refresh-{next(self._numbers)}"
            self.refresh_tokens[answer["refresh_token"]] = token
        return Response(200, answer, {"cache-control": "no-store"})

    # Clients --------------------------------------------------------------------------------------------

    def _client(self, client_id: str) -> Json | None:
        if client_id.startswith("https://") and self.metadata.get("client_id_metadata_document_supported"):
            return {"client_id": client_id, "token_endpoint_auth_method": "none"}
        return self.clients.get(client_id)

    def _authenticated(self, request: Request) -> str | None:
        """The client that a token request comes from, by its own method alone."""
        form, basic = request.form, request.headers.get("authorization", "")
        if basic.startswith("Basic "):
            pair = base64.b64decode(basic[6:]).decode().split(":")
            client_id, secret = unquote_plus(pair[0]), unquote_plus(pair[1])
            method, good = "client_secret_basic", secret
        elif "client_assertion" in form:
            return self._asserted(form)
        elif "client_secret" in form:
            client_id, method, good = form.get("client_id", ""), "client_secret_post", form["client_secret"]
        elif form.get("grant_type") == JWT_BEARER and "client_id" not in form:
            return "workload"
        else:
            client_id, method, good = form.get("client_id", ""), "none", ""
        client = self._client(client_id)
        if client is None or client.get("token_endpoint_auth_method", "client_secret_basic") != method:
            return None
        return client_id if method == "none" or client.get("client_secret") == good else None

    def _asserted(self, form: dict[str, str]) -> str | None:
        claims = jwt.decode(form["client_assertion"], options={"verify_signature": False})
        client = self._client(claims["sub"])
        if client is None or client.get("token_endpoint_auth_method") != "private_key_jwt":
            return None
        try:
            jwt.decode(
                form["client_assertion"],
                client["key"],
                [client["algorithm"]],
                audience=self.issuer,
                issuer=claims["sub"],
                options={"require": ["exp", "iat", "jti"]},
            )
        except jwt.PyJWTError:
            return None
        return str(claims["sub"])

    def _checked(self, proof: str, method: str, url: str, token: str | None = None) -> tuple[Json, str]:
        """The claims of a good DPoP proof and the thumbprint of its key. Raises AssertionError."""
        claims, thumbprint = checked_proof(proof, method, url, token)
        assert claims["jti"] not in self._proofs, "a proof was used twice"
        self._proofs.add(claims["jti"])
        return claims, thumbprint


def checked_proof(proof: str, method: str, url: str, token: str | None) -> tuple[Json, str]:
    """The claims of a good DPoP proof (RFC 9449, 4.3) and its key's thumbprint. Raises AssertionError."""
    head = jwt.get_unverified_header(proof)
    assert head["typ"] == "dpop+jwt" and "d" not in head["jwk"]
    key = jwt.PyJWK(head["jwk"], head["alg"]).key
    claims: Json = jwt.decode(proof, key, [head["alg"]])
    assert (claims["htm"], claims["htu"]) == (method, url)
    assert abs(claims["iat"] - time.time()) < 60 and claims["jti"]
    if token is not None:
        digest = hashlib.sha256(token.encode()).digest()
        assert claims["ath"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    members = {name: head["jwk"][name] for name in sorted(head["jwk"])}
    return claims, repr(members)


class GuardedServer(HttpSite):
    """An MCP server (2025-11-25, no sessions) that lets in whoever has a token of one of its issuers.

    `needs` are scopes by method; `metadata_at` is where its metadata lies, None for a server without any.
    """

    def __init__(self, issuer: AuthorizationServer | None = None, *, path: str = "/mcp") -> None:
        super().__init__()
        self.path = path
        self.issuer = issuer
        self.metadata_at: str | None = f"{RESOURCE_METADATA}{path}"
        self.metadata: Json = {}
        self.announces = True
        self.challenge_scopes: tuple[str, ...] = ()
        self.scopes_supported: tuple[str, ...] | None = None
        self.needs: dict[str, tuple[str, ...]] = {}
        self.open_methods: set[str] = set()
        self.is_dpop = False
        self.nonce: str | None = None
        self.lets_nobody_in = False
        self.challenge: str | None = None
        self.refused: list[str | None] = []
        self.let_in: list[str] = []
        self.routes[("POST", path)] = self._post

    async def __aenter__(self) -> "GuardedServer":
        await super().__aenter__()
        if self.metadata_at is not None:
            self.routes[("GET", self.metadata_at)] = self._metadata
        return self

    @property
    def url(self) -> str:
        return f"{self.origin}{self.path}"

    def _metadata(self, request: Request) -> Response:
        right: Json = {
            "resource": self.url,
            "authorization_servers": [self.issuer.issuer] if self.issuer else None,
        }
        right["scopes_supported"] = self.scopes_supported
        merged = {**right, **self.metadata}
        return Response(200, {name: value for name, value in merged.items() if value is not None})

    def _post(self, request: Request) -> Response:
        method = request.json.get("method", "")
        if method in self.open_methods:
            return self._answer(request.json)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        issuer = self.issuer
        assert issuer is not None
        if self.lets_nobody_in or not issuer.accepts(token) or scheme.lower() != self._scheme:
            self.refused.append(token or None)
            return self._refusal(401, "invalid_token" if token else None, self.challenge_scopes)
        if self.is_dpop:
            claims, thumbprint = checked_proof(request.headers["dpop"], "POST", self.url, token)
            assert issuer.tokens[token].key_thumbprint == thumbprint
            if self.nonce is not None and claims.get("nonce") != self.nonce:
                return self._refusal(401, "use_dpop_nonce", (), {"DPoP-Nonce": self.nonce})
        needed = self.needs.get(method, ())
        if not issuer.accepts(token, scopes=needed):
            return self._refusal(403, "insufficient_scope", needed)
        self.let_in.append(token)
        return self._answer(request.json)

    @property
    def _scheme(self) -> str:
        return "dpop" if self.is_dpop else "bearer"

    def _refusal(
        self, status: int, error: str | None, scopes: tuple[str, ...], headers: dict[str, str] | None = None
    ) -> Response:
        said = {
            "error": error,
            "scope": " ".join(scopes) or None,
            "resource_metadata": f"{self.origin}{self.metadata_at}"
            if self.announces and self.metadata_at
            else None,
        }
        parameters = ", ".join(f'{name}="{value}"' for name, value in said.items() if value is not None)
        challenge = self.challenge or f"{'DPoP' if self.is_dpop else 'Bearer'} {parameters}"
        return Response(status, {"error": error}, {"WWW-Authenticate": challenge, **(headers or {})})

    def _answer(self, message: Json) -> Response:
        if "id" not in message:
            return Response(202)
        tool = {"name": "greet", "description": "greets", "inputSchema": {"type": "object"}}
        results: dict[str, Json] = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"},
            },
            "tools/list": {"tools": [tool]},
            "tools/call": {"content": [{"type": "text", "text": "hello"}]},
            "ping": {},
        }
        if message["method"] not in results:
            error = {"code": -32601, "message": "unknown method"}
            return Response(200, {"jsonrpc": "2.0", "id": message["id"], "error": error})
        return Response(200, {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]})


class IdentityProvider(HttpSite):
    """Exchanges a person's ID token for one authorization server's ID-JAG (RFC 8693)."""

    def __init__(self, id_token: str, signing_key: Any) -> None:
        super().__init__()
        self.id_token = id_token
        self.signing_key = signing_key
        self.issued_type = ID_JAG
        self.forms: list[dict[str, str]] = []
        self.routes |= {("POST", "/token"): self._token, ("GET", OPENID_METADATA): self._metadata}

    def _metadata(self, request: Request) -> Response:
        return Response(200, {"issuer": self.origin, "token_endpoint": f"{self.origin}/token"})

    def _token(self, request: Request) -> Response:
        form = request.form
        self.forms.append(form)
        if form["grant_type"] != TOKEN_EXCHANGE or form["subject_token"] != self.id_token:
            return Response(400, {"error": "invalid_grant"})
        claims = {"aud": form["audience"], "resource": form["resource"], "exp": time.time() + 60}
        token = jwt.encode(claims, self.signing_key, "ES256", headers={"typ": "oauth-id-jag+jwt"})
        return Response(200, {"access_token": token, "issued_token_type": self.issued_type, "token_type": "N_A"})
