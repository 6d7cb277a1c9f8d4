"""Who may talk to the API server: certificates, tokens and kubeconfigs of one control plane."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path

import trustme
import yaml

# Users that the control plane's own programs act as; RBAC's bootstrap roles know all but admin and kwok.
COMPONENT_GROUPS = {
    "admin": "system:masters",
    "kwok": "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
}


@dataclass(frozen=True)
class Identities:
    """Files that prove who is who, made anew for each control plane."""

    home: Path
    ca: str = ""
    tokens: dict[str, str] = field(default_factory=dict)

    @classmethod
    def make(cls, home: Path) -> Identities:
        """Write certificates, the key of service accounts and the token file below `home`."""
        home.mkdir(parents=True, exist_ok=True)
        authority = trustme.CA()
        server = authority.issue_cert("127.0.0.1", "localhost")
        (home / "server.crt").write_bytes(b"".join(pem.bytes() for pem in server.cert_chain_pems))
        server.private_key_pem.write_to_path(home / "server.key")
        account_key = authority.issue_cert("service-accounts", key_type=trustme.KeyType.RSA)
        account_key.private_key_pem.write_to_path(home / "service-accounts.key")
        authority.cert_pem.write_to_path(home / "ca.crt")
        tokens = {user: secrets.token_hex(16) for user in COMPONENT_GROUPS}
        rows = [f'{token},{user},{user},"{COMPONENT_GROUPS[user]}"' for user, token in tokens.items()]
        (home / "tokens.csv").write_text("\n".join(rows) + "\n")
        return cls(home, authority.cert_pem.bytes().decode(), tokens)

    def path(self, name: str) -> Path:
        """A file of these identities."""
        return self.home / name

    def kubeconfig(self, server: str, user: str, token: str | None = None) -> Path:
        """A kubeconfig file for a user; a server of plain HTTP (a proxy) is used without certificates."""
        path = self.home / f"{user.replace(':', '-')}-{server.rpartition(':')[2]}.kubeconfig"
        write_kubeconfig(path, server, user, token or self.tokens[user], self.ca)
        return path


def write_kubeconfig(path: Path, server: str, user: str, token: str, ca: str) -> None:
    """Write a kubeconfig with one context that carries everything it needs."""
    cluster: dict[str, str] = {"server": server}
    if server.startswith("https:"):
        cluster["certificate-authority-data"] = trust_data(ca)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": user}}],
        "current-context": "e2e",
    }
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    path.chmod(0o600)


def trust_data(ca: str) -> str:
    """A certificate in the form that kubeconfigs carry."""
    import base64

    return base64.b64encode(ca.encode()).decode()
