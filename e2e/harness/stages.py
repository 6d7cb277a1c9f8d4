"""What KWOK does in the place of every node's kubelet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_NODE_READY = """
{{ $now := Now }}
conditions:
- type: Ready
  status: "True"
  reason: KubeletReady
  message: kwok plays the kubelet
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
capacity:
{{ with .status.capacity }}
{{ YAML . 1 }}
{{ else }}
  cpu: "64"
  memory: 256Gi
  pods: "110"
{{ end }}
allocatable:
{{ with .status.allocatable }}
{{ YAML . 1 }}
{{ else }}
  cpu: "64"
  memory: 256Gi
  pods: "110"
{{ end }}
"""

_POD_RUNNING = """
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
conditions:
{{ range $type := (list "Initialized" "Ready" "ContainersReady") }}
- type: {{ $type }}
  status: "True"
  lastProbeTime: null
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  started: true
  restartCount: 0
  state:
    running:
      startedAt: {{ $now | Quote }}
{{ end }}
"""


def _expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


def _stage(name: str, kind: str, when: list[dict[str, Any]], then: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": when},
            "next": then,
        },
    }


def write_stages(path: Path) -> None:
    """Write the stages: nodes become Ready, bound pods run, deleted pods go.

    Unlike a kubelet, KWOK starts a pod whose claims are not reserved for it.
    """
    stages = [
        _stage(
            "node-ready",
            "Node",
            [_expression('.status.conditions.[] | select( .type == "Ready" ) | .status', "NotIn", "True")],
            {"statusTemplate": _NODE_READY},
        ),
        _stage(
            "pod-running",
            "Pod",
            [
                _expression(".metadata.deletionTimestamp", "DoesNotExist"),
                _expression(".status.phase", "In", "Pending"),
                _expression(
                    '.status.conditions.[] | select( .type == "Initialized" ) | .status', "NotIn", "True"
                ),
            ],
            {"statusTemplate": _POD_RUNNING},
        ),
        _stage(
            "pod-deleted",
            "Pod",
            [_expression(".metadata.deletionTimestamp", "Exists")],
            {"finalizers": {"empty": True}, "delete": True},
        ),
    ]
    path.write_text(yaml.safe_dump_all(stages, sort_keys=False))
