"""Keys and signatures: the one edge to PyJWT and cryptography, which take 150 ms to load. Use it by `signing`."""

from typing import Any

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from jwt.algorithms import get_default_algorithms

PrivateKey = EllipticCurvePrivateKey | Ed25519PrivateKey | RSAPrivateKey

_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}


class KeyFault(ValueError):
    """A key that is none, or one that does not sign what it should."""


def load_key(pem: str) -> PrivateKey:
    """The private key in a PEM. Raises KeyFault."""
    try:
        key = load_pem_private_key(pem.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise KeyFault("must be an unencrypted private key in PEM (BEGIN PRIVATE KEY)") from None
    if not isinstance(key, PrivateKey):
        raise KeyFault("must be an RSA, EC or Ed25519 key")
    return key


def new_key(algorithm: str) -> PrivateKey:
    """A new key for ES256, EdDSA or RS256."""
    if algorithm == "ES256":
        return ec.generate_private_key(ec.SECP256R1())
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem_of(key: PrivateKey) -> str:
    """The key as text, to be kept."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def algorithm_of(key: PrivateKey) -> str:
    """The algorithm that a key is usually used with."""
    match key:
        case EllipticCurvePrivateKey():
            return _CURVES.get(key.curve.name, "ES256")
        case Ed25519PrivateKey():
            return "EdDSA"
        case _:
            return "RS256"


def sign(claims: dict[str, Any], key: PrivateKey, algorithm: str, headers: dict[str, Any]) -> str:
    """A JWT. Raises KeyFault where the key does not fit the algorithm."""
    try:
        return jwt.encode(claims, key, algorithm, headers=headers)
    except (TypeError, ValueError, jwt.PyJWTError):
        raise KeyFault(f"does not sign {algorithm}") from None


def public_jwk(key: PrivateKey, algorithm: str) -> dict[str, Any]:
    """The public half of a key (RFC 7517), with what names it and nothing else."""
    kind: Any = get_default_algorithms()[algorithm]
    jwk = kind.to_jwk(key.public_key(), as_dict=True)
    return {name: value for name, value in jwk.items() if name in ("kty", "crv", "x", "y", "n", "e")}
