"""The server of the page: on 127.0.0.1 alone, until it is stopped."""

from __future__ import annotations

import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ilk.app.guard import Guard, new_token
from ilk.app.place import Place
from ilk.errors import ResourceError, UsageError, shown

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Opening:
    """What `ilk open` was asked for."""

    what: str | None = None
    port: int = 0
    browser: bool = True
    read_only: bool = False
    most_upload: int = 2 * 10**9


def serve(opening: Opening, say: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C."""
    try:
        import uvicorn

        from ilk.app.rehearsal import rehearse_look
        from ilk.app.routes import application
        from ilk.app.session import Session
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise UsageError(
            "no-app", f"the page needs {error.name}", do="Install it: pip install 'ilk[app]'"
        ) from None
    folder, start = _folder_of(opening.what)
    session = Session(Place.of(folder, opening.most_upload), read_only=opening.read_only)
    listener = _listener(opening.port)
    port = listener.getsockname()[1]
    token = new_token()
    address = f"http://{LOOPBACK}:{port}/{token}/{start}"
    guarded = Guard(application(session), token, port, read_only=opening.read_only)
    config = uvicorn.Config(
        guarded, log_level="error", access_log=False, server_header=False, date_header=False, ws="none",
        lifespan="off", timeout_graceful_shutdown=2,
    )  # fmt: skip
    say(f"the page is at {address}")
    say("only this machine can open it; Ctrl-C stops it, and what was finished stays in the run folders")
    if not opening.read_only:
        session.tasks.warm()
    threading.Thread(target=rehearse_look, daemon=True).start()
    if opening.browser:
        threading.Timer(0.3, webbrowser.open, [address]).start()
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        session.tasks.close()


def _folder_of(what: str | None) -> tuple[Path, str]:
    """The folder that the page sees, and where in the page it begins."""
    if what is None:
        return Path.cwd(), ""
    path = Path(os.path.realpath(what))
    if not path.exists():
        raise UsageError(
            "no-file", f"there is no file or folder {shown(what, 120)}", do="Give a table, a run or a folder"
        )
    if path.is_dir() and (path / "summary.json").is_file():
        return path.parent, f"?run={quote(path.name, safe='')}"
    if path.is_dir():
        return path, ""
    return path.parent, f"?table={quote(path.name, safe='')}"


def _listener(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if sys.platform != "win32":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise ResourceError(
            "port-taken", f"port {port} cannot be used: {error.strerror}", do="Give another: --port N"
        ) from None
    return listener
