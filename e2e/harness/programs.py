"""The command lines of the control plane's programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from e2e import build
from e2e.harness.identity import Identities

CONTROLLERS = (
    "resourceclaim-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "device-taint-eviction-controller",
    "replicaset-controller",
    "statefulset-controller",
    "job-controller",
)
"""The controllers of kube-controller-manager that run unless a plane says otherwise."""


@dataclass(frozen=True)
class Options:
    """How a control plane differs from the usual one.

    `gates` are feature gates of API server, controller manager and scheduler alike, on or off.
    `runtime_config` is the API server's (`{"api/all": "true"}`); with a gate, the versions that it
    needs must be switched on here.
    `controllers` run in the controller manager; without any, it is not started.
    `scheduler` and `kwok` may be left out.
    `kubernetes` is the version of API server, controller manager and scheduler.
    `authorization` are the API server's authorizers.
    `emulates` is an older version (`1.35`) whose APIs and gates they have instead of their own.
    `audit` keeps a log of all writes, at the price of a little speed.
    """

    gates: Mapping[str, bool] = field(default_factory=dict)
    runtime_config: Mapping[str, str] = field(default_factory=dict)
    controllers: Sequence[str] = CONTROLLERS
    scheduler: bool = True
    kwok: bool = True
    audit: bool = True
    kubernetes: str = build.KUBERNETES
    emulates: str = ""
    authorization: Sequence[str] = ("RBAC", "Node")
    apiserver_flags: Sequence[str] = ()
    controller_manager_flags: Sequence[str] = ()

    def without(self, *controllers: str) -> Options:
        """The same, with some controllers left out of the controller manager."""
        rest = tuple(name for name in self.controllers if name not in controllers)
        return Options(**(self.__dict__ | {"controllers": rest}))


@dataclass(frozen=True, slots=True)
class Ports:
    """The loopback ports of one plane; each program keeps its own over restarts."""

    etcd: int
    etcd_peer: int
    apiserver: int
    controller_manager: int
    scheduler: int


def _gates(options: Options) -> list[str]:
    pairs = ",".join(f"{name}={str(on).lower()}" for name, on in sorted(options.gates.items()))
    flags = [f"--feature-gates={pairs}"] if pairs else []
    return [*flags, f"--emulated-version=kube={options.emulates}"] if options.emulates else flags


def etcd(home: Path, ports: Ports) -> list[str]:
    """Flags of etcd; nothing is synced to disk, since nothing outlives a test."""
    client, peer = f"http://127.0.0.1:{ports.etcd}", f"http://127.0.0.1:{ports.etcd_peer}"
    return [
        f"--data-dir={home / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        "--quota-backend-bytes=4294967296",
    ]


def apiserver(home: Path, ports: Ports, identities: Identities, options: Options) -> list[str]:
    """Flags of kube-apiserver: real RBAC, tokens from a file, accounts by TokenRequest."""
    served = {"resource.k8s.io/v1": "true"} | dict(options.runtime_config)
    flags = [
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.apiserver}",
        f"--tls-cert-file={identities.path('server.crt')}",
        f"--tls-private-key-file={identities.path('server.key')}",
        f"--token-auth-file={identities.path('tokens.csv')}",
        f"--authorization-mode={','.join(options.authorization)}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={identities.path('service-accounts.key')}",
        f"--service-account-signing-key-file={identities.path('service-accounts.key')}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--endpoint-reconciler-type=none",
        f"--cert-dir={home / 'apiserver'}",
        f"--runtime-config={','.join(f'{name}={value}' for name, value in sorted(served.items()))}",
        *_gates(options),
        *options.apiserver_flags,
    ]
    if options.audit:
        policy = home / "audit-policy.yaml"
        policy.write_text(yaml.safe_dump(_AUDIT_POLICY))
        flags += [f"--audit-policy-file={policy}", f"--audit-log-path={home / 'audit.log'}"]
    return flags


# Reads are left out, and what the control plane says of itself.
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [
        {"level": "None", "verbs": ["get", "list", "watch"]},
        {"level": "None", "users": ["admin", "kwok"]},
        {"level": "Metadata"},
    ],
}


def controller_manager(home: Path, ports: Ports, kubeconfig: Path, options: Options) -> list[str]:
    """Flags of kube-controller-manager: each controller acts as its own account, the Lease is real."""
    return [
        f"--kubeconfig={kubeconfig}",
        "--use-service-account-credentials=true",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.controller_manager}",
        f"--cert-dir={home / 'controller-manager'}",
        f"--controllers={','.join(options.controllers)}",
        "--leader-elect=true",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        *_gates(options),
        *options.controller_manager_flags,
    ]


def scheduler(home: Path, ports: Ports, kubeconfig: Path, options: Options) -> list[str]:
    """Flags of kube-scheduler; it starts without an election, so that it is there at once."""
    config = home / "scheduler.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 500, "burst": 1000},
                "leaderElection": {"leaderElect": False},
            }
        )
    )
    return [
        f"--config={config}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.scheduler}",
        f"--cert-dir={home / 'scheduler'}",
        *_gates(options),
    ]


def kwok(stages: Path, kubeconfig: Path) -> list[str]:
    """Flags of kwok, which plays the kubelet of every node."""
    return [f"--kubeconfig={kubeconfig}", "--manage-all-nodes", f"--config={stages}"]
