"""How to reach the API server: KUBECONFIG or ~/.kube/config, else the service account of the pod."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import yaml
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.config.config_exception import ConfigException

from dovetail.errors import Unavailable

CONNECTIONS = 64
"""How many requests may be under way at a time."""

_DEFAULT_KUBECONFIG = "~/.kube/config"
_READING = "reading the cluster's address"
_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True)
class Credentials:
    """What another client (Kopf's) needs to connect in the same way; paths are of files."""

    server: str
    ca_path: str | None
    insecure: bool
    token: str | None
    certificate_path: str | None
    private_key_path: str | None
    proxy_url: str | None


def in_cluster() -> bool:
    """Whether this process runs in a pod that has a service account and no KUBECONFIG is given."""
    return not os.environ.get("KUBECONFIG") and "KUBERNETES_SERVICE_HOST" in os.environ


def own_namespace() -> str | None:
    """The namespace of the pod that this process runs in."""
    return _NAMESPACE_FILE.read_text().strip() if _NAMESPACE_FILE.is_file() else None


async def read_configuration() -> Any:
    """The client's configuration; raises `Unavailable` where there is none."""
    configuration = Configuration()
    if in_cluster():
        _load_service_account(configuration)
    else:
        await _load_kubeconfig(configuration)
    configuration.connection_pool_maxsize = CONNECTIONS
    configuration.proxy = configuration.proxy or proxy_for(str(configuration.host))
    return configuration


def _load_service_account(configuration: Any) -> None:
    try:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError) as error:
        raise Unavailable(_READING, f"the service account of this pod: {error}") from error


async def _load_kubeconfig(configuration: Any) -> None:
    named = os.environ.get("KUBECONFIG")
    paths = named or _DEFAULT_KUBECONFIG
    if not _exists_any(paths):
        named_by = f"KUBECONFIG names {named}" if named else f"KUBECONFIG is not set, {paths} is the default"
        raise Unavailable(_READING, f"{named_by}, and there is no such file")
    try:
        await config.load_kube_config(config_file=paths, client_configuration=configuration)
    except (ConfigException, OSError) as error:
        raise Unavailable(_READING, f"kubeconfig {paths}: {error}") from error
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        # The client takes for granted that the file has the form of a kubeconfig.
        words = " ".join(str(error).split())
        raise Unavailable(_READING, f"{paths} is no valid kubeconfig: {words}") from error


def _exists_any(paths: str) -> bool:
    return any(Path(path).expanduser().exists() for path in paths.split(os.pathsep) if path)


def proxy_for(server: str) -> str | None:
    """The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name for a server."""
    address = urlsplit(server)
    return None if proxy_bypass(address.netloc) else getproxies().get(address.scheme)


async def connect() -> ApiClient:
    """A client for the cluster that the environment names; the caller closes it."""
    client = ApiClient(await read_configuration())
    # The client's own session looks for proxies and .netrc anew, in two other threads, at every request.
    rest = client.rest_client
    connector = rest.pool_manager.connector
    rest.pool_manager.detach()
    rest.pool_manager = aiohttp.ClientSession(connector=connector)
    return client


async def renew(client: ApiClient) -> None:
    """Give a client the token that is valid now; raises `Unavailable` where none can be read.

    Tokens of a kubeconfig come from a program, a file or the text itself, and are read once by the client.
    """
    now = await read_configuration()
    client.configuration.api_key = now.api_key
    client.configuration.api_key_prefix = now.api_key_prefix
    client.configuration.refresh_api_key_hook = now.refresh_api_key_hook


async def read_credentials() -> Credentials:
    """The same connection in the words of another client; read again when it has expired."""
    configuration = await read_configuration()
    header = (await configuration.auth_settings()).get("BearerToken", {}).get("value")
    return Credentials(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        insecure=not configuration.verify_ssl,
        token=header.removeprefix("Bearer ") if header else None,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
        proxy_url=configuration.proxy,
    )
