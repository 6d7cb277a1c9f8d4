"""A kubeconfig that cannot be used is named, whatever is wrong with it."""

from pathlib import Path

import pytest

from dovetail.cluster.connection import in_cluster, read_configuration
from dovetail.errors import Unavailable

CONTEXTS = """
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no valid kubeconfig"),
        ("[", "is no valid kubeconfig: while parsing a flow node"),
        ("just words", "is no valid kubeconfig"),
        ("contexts: 5", "is no valid kubeconfig"),
        (CONTEXTS, "current-context"),
        (CONTEXTS + "current-context: other", "other"),
    ],
)
async def test_a_kubeconfig_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    """One line, with the file and what is wrong."""
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(path))

    with pytest.raises(Unavailable) as refused:
        await read_configuration()

    assert str(path) in str(refused.value)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


async def test_of_several_files_one_has_to_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KUBECONFIG may name a list, as for kubectl; what is not there is passed over."""
    path = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", f"/nonexistent:{path}")
    with pytest.raises(Unavailable, match=f"KUBECONFIG names /nonexistent:{path}, and there is no such file"):
        await read_configuration()

    path.write_text(CONTEXTS + "current-context: x")

    assert (await read_configuration()).host == "http://127.0.0.1:1"


def test_an_empty_kubeconfig_variable_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for kubectl: in a pod, the service account is used then."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBECONFIG", "")
    assert in_cluster()

    monkeypatch.setenv("KUBECONFIG", "/some/file")
    assert not in_cluster()
