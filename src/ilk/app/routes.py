"""The addresses of the page: each asks the session for a document, in a thread, and says errors as the session does."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ilk.app.answer import report_script, report_style
from ilk.app.export import assigned, exported
from ilk.app.history import Conflict
from ilk.app.rows import Query
from ilk.app.session import Session
from ilk.errors import IlkError, ResourceError, UsageError, shown, typed

MOST_JSON = 4 * 2**20
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
STATUS = {2: 400, 3: 422, 4: 409, 5: 413, 6: 422}
MADE = {"report.js": report_script, "report.css": report_style}

Handler = Callable[[Session, dict[str, Any]], Any]


def application(session: Session) -> Starlette:
    """All addresses; a `Guard` stands in front of them."""
    reading: dict[str, Handler] = {
        "overview": lambda s, _: s.overview(),
        "tasks": lambda s, _: s.under_way(),
        "answer": lambda s, q: s.answer(_text(q, "run")),
        "version": lambda s, q: s.told(_text(q, "run"), _text(q, "version", "")),
        "row": lambda s, q: s.row(_text(q, "run"), _text(q, "version", ""), _whole(q, "row")),
        "compare": lambda s, q: s.compare(_text(q, "first"), _text(q, "second")),
    }
    asking: dict[str, Handler] = {
        "columns": lambda s, q: s.columns(_text(q, "table"), q.get("options", {})),
        "rows": lambda s, q: s.rows(_text(q, "run"), _text(q, "version", ""), _query(q)),
        "check": lambda s, q: s.check(_text(q, "run"), _text(q, "table")),
    }
    writing: dict[str, Handler] = {
        "fit": lambda s, q: s.fit(_text(q, "table"), q.get("options", {})),
        "stop": lambda s, q: s.tasks.stop(_whole(q, "task")),
        "k": lambda s, q: s.show_k(_text(q, "run"), _whole(q, "k"), _whole(q, "revision")),
        "prepare": lambda s, q: s.prepare(_text(q, "run")),
        "change": lambda s, q: s.change(_text(q, "run"), q.get("change"), _whole(q, "revision")),
        "step": lambda s, q: s.step(_text(q, "run"), _whole(q, "at"), _whole(q, "revision")),
    }
    routes = [Route(f"/api/{name}", _get(session, do)) for name, do in reading.items()]
    routes += [Route(f"/api/{name}", _ask(session, do), methods=["POST"]) for name, do in asking.items()]
    routes += [Route(f"/api/{name}", _ask(session, do), methods=["POST"]) for name, do in writing.items()]
    routes += [
        Route("/api/upload", _upload(session), methods=["POST"]),
        Route("/export/{what}", _export(session)),
        Route("/static/{name}", _static),
        Route("/", _index),
    ]
    return Starlette(routes=routes)


def _get(session: Session, do: Handler) -> Any:
    async def handle(request: Request) -> Response:
        return await _answered(session, do, dict(request.query_params))

    return handle


def _ask(session: Session, do: Handler) -> Any:
    async def handle(request: Request) -> Response:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_JSON:
                return _refusal(ResourceError("too-large", "too much was sent at once"))
        try:
            asked = json.loads(body)
            if not isinstance(asked, dict):
                raise ValueError
        except (ValueError, RecursionError):
            return _refusal(UsageError("bad-request", "this is no request of the page"))
        return await _answered(session, do, asked)

    return handle


async def _answered(session: Session, do: Handler, asked: dict[str, Any]) -> Response:
    try:
        made = await run_in_threadpool(do, session, asked)
        return JSONResponse(made)
    except IlkError as error:
        return _refusal(error)
    except (ValueError, KeyError, TypeError, OSError) as error:
        bug = {"code": "bug", "text": f"an unexpected {type(error).__name__}: this is a bug in ilk"}
        return JSONResponse({"error": bug}, 500)


def _refusal(error: IlkError) -> JSONResponse:
    said = {"code": error.code, "text": shown(typed(str(error), error.options), 2000)}
    status = 409 if isinstance(error, Conflict) else STATUS.get(error.exit_code, 400)
    return JSONResponse({"error": said}, status)


def _upload(session: Session) -> Any:
    async def handle(request: Request) -> Response:
        """The body to disk as it comes, under a name of its own until it is whole."""
        try:
            path = await run_in_threadpool(session.place.new_upload, request.query_params.get("name", ""))
        except IlkError as error:
            return _refusal(error)
        partial = path.with_name(f".{path.name}.{os.urandom(6).hex()}.part")
        size, most = 0, session.place.most_upload
        try:
            with open(partial, "xb") as file:
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > most:
                        what = f"the file is larger than {most / 1e9:g} GB"
                        return _refusal(ResourceError("too-large", what, do="Open it with: ilk open FILE"))
                    await run_in_threadpool(file.write, chunk)
            os.link(partial, path)  # refused where another took the name meanwhile
        except FileExistsError:
            return _refusal(
                UsageError("name-taken", "a file of this name came at the same time", do="Send it again")
            )
        except OSError as error:
            return _refusal(ResourceError("write-failed", f"the file could not be kept: {error.strerror}"))
        finally:
            partial.unlink(missing_ok=True)
        return JSONResponse({"table": f"uploads/{path.name}", "bytes": size})

    return handle


def _export(session: Session) -> Any:
    def made(request: Request) -> tuple[str, Any]:
        asked, what = dict(request.query_params), request.path_params["what"]
        run, version = session.version(_text(asked, "run"), _text(asked, "version", ""))
        stem = run.name.removesuffix(".ilk")
        if what == "assigned":
            return f"{stem}-new-rows.csv", assigned(version, session.place.table(_text(asked, "table")))
        name, content = exported(version, what)
        return f"{stem}-{name}", content

    async def handle(request: Request) -> Response:
        try:
            name, content = await run_in_threadpool(made, request)
        except IlkError as error:
            return _refusal(error)
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}
        return StreamingResponse(content, media_type="application/octet-stream", headers=headers)

    return handle


async def _index(request: Request) -> Response:
    del request
    return _file("index.html")


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name in MADE:
        return Response(MADE[name](), media_type=TYPES[os.path.splitext(name)[1]])
    return _file(name)


def _file(name: str) -> Response:
    found = {entry.name: entry for entry in (files("ilk.app") / "static").iterdir()}
    kind = TYPES.get(os.path.splitext(name)[1])
    if name not in found or kind is None:
        return Response("there is no such file\n", 404, media_type="text/plain")
    return Response(found[name].read_bytes(), media_type=kind)


def _text(asked: dict[str, Any], name: str, usual: str | None = None) -> str:
    value = asked.get(name, usual)
    if not isinstance(value, str) or len(value) > 4000:
        raise UsageError("bad-request", f"{name} is missing or no text")
    return value


def _whole(asked: dict[str, Any], name: str, usual: int | None = None) -> int:
    value = asked.get(name, usual)
    if isinstance(value, str) and value.isdecimal() and len(value) <= 15:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10**15:
        raise UsageError("bad-request", f"{name} is missing or no number")
    return value


def _query(asked: dict[str, Any]) -> Query:
    only, group, sort = asked.get("only"), asked.get("group"), asked.get("sort")
    if only is not None and not (
        isinstance(only, list) and len(only) <= 10_000 and all(type(n) is int for n in only)
    ):
        raise UsageError("bad-request", "only is no list of rows")
    return Query(
        group=None if group is None else _text(asked, "group"),
        search=_text(asked, "search", ""),
        sort=None if sort is None else _text(asked, "sort"),
        down=asked.get("down") is True,
        page=_whole(asked, "page", 0),
        size=_whole(asked, "size", 50),
        only=only,
    )
