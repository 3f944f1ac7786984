"""Who may ask: only who has the token, from a page of this server, under the name of this machine.

The token is the first part of every path. Host is checked against DNS rebinding, Origin and Sec-Fetch-Site against
pages of others; there is no CORS. What is answered may load nothing from elsewhere and run no inline script.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

TOKEN_BYTES = 24
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
READING = ("GET", "HEAD")


def new_token() -> str:
    """A random token that fits in a path."""
    return secrets.token_urlsafe(TOKEN_BYTES)


class Guard:
    """An ASGI application in front of another, which sees paths without the token."""

    def __init__(self, application: Application, token: str, port: int, *, read_only: bool = False) -> None:
        self.application, self.token, self.read_only = application, token, read_only
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
            return
        if scope["type"] != "http":  # a socket: there is none
            await send({"type": "websocket.close", "code": 1008})
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        _, _, rest = scope["path"][1:].partition("/")
        inner = {**scope, "path": "/" + rest, "raw_path": ("/" + rest).encode()}
        await self.application(inner, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """The status and the reason why this request is refused."""
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in (b"host", b"origin") and name in headers:
                return 400, "a header was sent twice"
            headers[name] = value
        if headers.get(b"host", b"").decode("latin-1") not in self.hosts:
            return 403, "this name is not that of the page"
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1") not in self.origins:
            return 403, "another page asked"
        if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            return 403, "another page asked"
        given = scope["path"][1:].partition("/")[0]
        if not secrets.compare_digest(given.encode("utf-8", "replace"), self.token.encode()):
            return 403, "the address lacks the token that ilk open printed"
        if self.read_only and scope["method"] not in READING:
            return 403, "the page was opened with --read-only"
        return None


async def _refuse(send: Send, status: int, reason: str) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
    headers.append((b"content-type", b"text/plain; charset=utf-8"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"refused: {reason}\n".encode()})


def _with_headers(send: Send) -> Send:
    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower().encode(): value.encode() for name, value in HEADERS.items()}
            kept = [(name, value) for name, value in message["headers"] if name.lower() not in own]
            message = {**message, "headers": [*kept, *own.items()]}
        await send(message)

    return sent
