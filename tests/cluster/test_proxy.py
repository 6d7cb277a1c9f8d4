"""The API server is reached through the proxy that the environment names."""

import pytest

from dovetail.cluster.connection import proxy_for

NAMES = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "ALL_PROXY")


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*NAMES, *map(str.lower, NAMES)):
        monkeypatch.delenv(name, raising=False)


def test_without_variables_there_is_no_proxy() -> None:
    """The server is reached directly."""
    assert proxy_for("https://10.0.0.1:6443") is None


def test_the_proxy_is_that_of_the_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTPS_PROXY counts for https, HTTP_PROXY does not."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.com:3128")
    monkeypatch.setenv("HTTP_PROXY", "http://other.example.com:3128")

    assert proxy_for("https://api.example.com:6443") == "http://proxy.example.com:3128"


@pytest.mark.parametrize("exception", ["api.example.com", ".example.com", "api.example.com:6443", "*"])
def test_servers_of_no_proxy_are_reached_directly(monkeypatch: pytest.MonkeyPatch, exception: str) -> None:
    """NO_PROXY names hosts, domains, hosts with a port, or all."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.com:3128")
    monkeypatch.setenv("NO_PROXY", exception)

    assert proxy_for("https://api.example.com:6443") is None
