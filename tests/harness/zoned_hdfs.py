"""The same HDFS with encryption zones, whose keys are in a file beside it, as a site's are in a KMS."""

from __future__ import annotations

from tests.harness.hdfs_server import HdfsServer

_KEY = "zones"
_KEY_SHELL = "org.apache.hadoop.crypto.key.KeyShell"
_CRYPTO_ADMIN = "org.apache.hadoop.hdfs.tools.CryptoAdmin"


class ZonedHdfs(HdfsServer):
    """It has the key of all its zones when it starts."""

    @property
    def client_settings(self) -> dict[str, dict[str, str]]:
        """Of clients in Java, by the name of their file."""
        settings = super().client_settings
        keys = {"hadoop.security.key.provider.path": f"jceks://file{self.folder}/keys.jceks"}
        return {**settings, "core-site": {**settings["core-site"], **keys}}

    def start(self) -> None:
        """Makes the key where it is missing, and starts both servers."""
        self._write_settings()
        if not (self.folder / "keys.jceks").exists():
            self._run(_KEY_SHELL, "create", _KEY)
        super().start()

    def make_zone(self, path: str) -> None:
        """An existing and empty directory becomes a zone: nothing is renamed into it or out of it from now on."""
        self._run(_CRYPTO_ADMIN, "-createZone", "-keyName", _KEY, "-path", path)
