"""Announces the page "Hive ACID" to Airflow 3.1 and later; Airflow 2 knows no such pages and passes it over.

Every process of Airflow imports plugins, also each task's, so nothing is imported here before a request comes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from airflow.providers.common.compat.sdk import AirflowPlugin, conf

URL_PREFIX = "/hive-acid"


def address(path: str) -> str:
    """The page's own path where Airflow lies below another one, to which it adds nothing by itself."""
    return f"{urlsplit(conf.get('api', 'base_url', fallback='') or '').path.rstrip('/')}{URL_PREFIX}{path}"


Message = MutableMapping[str, Any]
Application = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Any]


class LazyApplication:
    """An ASGI application that is made when its first request comes."""

    def __init__(self) -> None:
        self._application: Application | None = None

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Hand a request on."""
        if self._application is None:
            from airflow_provider_acid.plugins.application import make_application

            self._application = make_application()
        await self._application(scope, receive, send)


class HiveAcidPlugin(AirflowPlugin):
    """The page, its entry in Airflow's navigation, and its application."""

    name = "hive_acid"
    fastapi_apps = [{"app": LazyApplication(), "url_prefix": URL_PREFIX, "name": "Hive ACID"}]
    external_views = [
        {
            "name": "Hive ACID",
            "href": address("/"),
            "url_route": "hive-acid",
            "destination": "nav",
            "icon": address("/static/icon.svg"),
            "icon_dark_mode": address("/static/icon-dark.svg"),
        }
    ]
