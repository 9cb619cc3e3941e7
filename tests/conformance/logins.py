# SPDX-License-Identifier: Apache-2.0
"""How a host of the suite's logs in: the SDK's OAuth providers, with a person who always agrees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

_REDIRECT = AnyUrl("http://localhost:3000/callback")
_IDENTITY = "https://conformance-test.local/client-metadata.json"
"""The client's name where servers take a URL for one; the suite knows it."""


def create_login(url: str, scenario: str, gift: Mapping[str, Any]) -> httpx2.Auth | None:
    """The way to log in that a scenario is about; none where it is about something else."""
    if not scenario.startswith("auth/"):
        return None
    if scenario == "auth/client-credentials-jwt":
        return _create_signer(url, gift)
    if scenario == "auth/client-credentials-basic":
        return ClientCredentialsOAuthProvider(
            url, Memory(), client_id=gift["client_id"], client_secret=gift["client_secret"]
        )
    if scenario == "auth/enterprise-managed-authorization":
        return _create_employee(url, gift)
    return _create_person(url, gift)


class Memory:
    """Keeps tokens for as long as the process lives."""

    def __init__(self, client: OAuthClientInformationFull | None = None) -> None:
        self._client = client
        self._tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class Person:
    """Visits the page of an authorization server, agrees, and brings back what it says."""

    def __init__(self) -> None:
        self._brought: dict[str, list[str]] = {}

    async def visit(self, page: str) -> None:
        async with httpx2.AsyncClient() as browser:
            response = await browser.get(page, follow_redirects=False)
        self._brought = parse_qs(urlsplit(response.headers["location"]).query)

    async def come_back(self) -> AuthorizationCodeResult:
        given = {name: values[0] for name, values in self._brought.items()}
        return AuthorizationCodeResult(
            code=given["code"], state=given.get("state"), iss=given.get("iss")
        )


def _create_person(url: str, gift: Mapping[str, Any]) -> httpx2.Auth:
    person = Person()
    registration = None
    if "client_id" in gift:
        secret = gift.get("client_secret")
        registration = OAuthClientInformationFull(
            client_id=gift["client_id"],
            client_secret=secret,
            redirect_uris=[_REDIRECT],
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
        )
    metadata = OAuthClientMetadata(
        client_name="converser",
        redirect_uris=[_REDIRECT],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    return OAuthClientProvider(
        url,
        metadata,
        Memory(registration),
        redirect_handler=person.visit,
        callback_handler=person.come_back,
        client_metadata_url=_IDENTITY,
    )


def _create_signer(url: str, gift: Mapping[str, Any]) -> httpx2.Auth:
    parameters = SignedJWTParameters(
        issuer=gift["client_id"],
        subject=gift["client_id"],
        signing_key=gift["private_key_pem"],
        signing_algorithm=gift.get("signing_algorithm", "ES256"),
    )
    return PrivateKeyJWTOAuthProvider(
        url,
        Memory(),
        client_id=gift["client_id"],
        assertion_provider=parameters.create_assertion_provider(),
    )


def _create_employee(url: str, gift: Mapping[str, Any]) -> httpx2.Auth:
    """Someone whose company vouches for them: its word is exchanged for one that the server takes."""

    async def ask_company(audience: str, resource: str) -> str:
        request = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": gift["idp_id_token"],
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "client_id": gift["idp_client_id"],
            "audience": audience,
            "resource": resource,
        }
        async with httpx2.AsyncClient() as browser:
            response = await browser.post(gift["idp_token_endpoint"], data=request)
        word: str = response.json()["access_token"]
        return word

    return IdentityAssertionOAuthProvider(
        url,
        Memory(),
        client_id=gift["client_id"],
        client_secret=gift["client_secret"],
        issuer=_find_issuer(url),
        assertion_provider=ask_company,
        token_endpoint_auth_method="client_secret_basic",
    )


def _find_issuer(url: str) -> str:
    """The authorization server that the server itself names; a company would have it configured."""
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    response = httpx2.get(f"{origin}/.well-known/oauth-protected-resource{parts.path}")
    issuer: str = response.json()["authorization_servers"][0]
    return issuer
