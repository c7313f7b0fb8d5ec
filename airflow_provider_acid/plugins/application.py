"""The page's application: its files, and what they ask for. Every route needs the rights of :mod:`access`."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter, FastAPI, HTTPException, Response, status

from airflow_provider_acid.plugins.access import REQUIRED
from airflow_provider_acid.plugins.backends import Backends
from airflow_provider_acid.plugins.figures import router as figures

_MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'self'; object-src 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
}


def make_application(backends: Backends | None = None) -> FastAPI:
    """The application, as it is mounted into Airflow's."""
    # Its description would be public.
    application = FastAPI(title="Hive ACID", docs_url=None, redoc_url=None, openapi_url=None, dependencies=REQUIRED)
    application.state.backends = backends or Backends()
    application.include_router(_pages())
    application.include_router(figures, prefix="/api")
    return application


def _pages() -> APIRouter:
    router = APIRouter()
    folder = files("airflow_provider_acid.plugins").joinpath("static")
    contents = {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}

    def file(name: str) -> Response:
        media_type = _MEDIA_TYPES.get(name.rpartition(".")[2])
        if name not in contents or media_type is None:
            raise HTTPException(status.HTTP_404_NOT_FOUND, "There is no such file")
        return Response(contents[name], media_type=media_type, headers=_HEADERS)

    @router.get("/")
    def index() -> Response:
        return file("index.html")

    @router.get("/static/{name}")
    def static(name: str) -> Response:
        return file(name)

    return router
