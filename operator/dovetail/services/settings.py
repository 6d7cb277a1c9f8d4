"""What an administrator may set, by environment (`DOVETAIL_…`) or by flag of the same name."""

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from dovetail.core.features import GATES
from dovetail.errors import SettingInvalid

Mode = Literal["auto", "always", "never"]
DualModeNodes = Literal["exclude", "allow"]

_EXPECTED: Mapping[str, str] = {
    "greater_than": "has to be more than {gt:g}",
    "greater_than_equal": "has to be {ge:g} or more",
    "less_than": "has to be less than {lt:g}",
    "less_than_equal": "has to be {le:g} or less",
    "finite_number": "has to be a finite number",
    "float_parsing": "has to be a number",
    "float_type": "has to be a number",
    "int_parsing": "has to be a whole number",
    "int_parsing_size": "has to be a smaller number",
    "int_from_float": "has to be a whole number",
    "int_type": "has to be a whole number",
    "bool_parsing": "has to be true or false",
    "bool_type": "has to be true or false",
    "literal_error": "has to be {expected}",
    "string_type": "has to be text",
    "extra_forbidden": "is the value of a setting that does not exist",
}
"""What a value has to be, by what pydantic finds wrong with it."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class Settings(BaseSettings):
    """The settings of the operator; each description is the help text of its flag."""

    model_config = SettingsConfigDict(
        env_prefix="DOVETAIL_", frozen=True, extra="forbid", allow_inf_nan=False
    )

    claim_generation: Mode = Field(
        "auto",
        description="Who makes claims from templates: auto (Dovetail makes what is still missing after "
        "the grace time), always (Dovetail, at once) or never (kube-controller-manager alone).",
    )
    claim_generation_grace_seconds: float = Field(
        10.0, ge=0, description="How long auto leaves claims to kube-controller-manager."
    )
    release: Mode = Field(
        "auto",
        description="Who frees the claims of pods that are done: auto (Dovetail frees what is left untouched "
        "past the grace time), always (Dovetail, at once) or never (kube-controller-manager alone).",
    )
    release_grace_seconds: float = Field(
        15.0, ge=0, description="How long auto leaves claims of finished pods to kube-controller-manager."
    )
    scheduler_names: str = Field(
        "default-scheduler",
        description="Names of the schedulers whose pods are served, separated by commas (or a JSON list).",
    )
    shipped_mappings: bool = Field(True, description="Use the mappings that Dovetail brings along.")
    feature_gates: str = Field(
        "",
        description="Feature gates of the cluster, as A=true,B=false; what is not named is asked of the "
        "API server, or follows its version.",
    )
    dual_mode_nodes: DualModeNodes = Field(
        "exclude",
        description="What becomes of devices that a device plugin of their node offers as well: exclude "
        "(they are not given) or allow (they are, with a warning: for plugins that keep to other devices).",
    )
    unschedulable_seconds: float = Field(
        60.0,
        ge=1,
        description="How long an allocated pod may stay unschedulable before its devices are taken back.",
    )
    take_back_pause_seconds: float = Field(
        31.0,
        ge=0,
        description="The pause between the two steps of taking back, longer than a binding can take "
        "(an admission webhook may delay one by up to 30 seconds).",
    )
    avoid_seconds: float = Field(
        300.0,
        ge=0,
        description="How long a pod is not placed again on a node that its devices were taken back from.",
    )
    hold_seconds: float = Field(
        300.0,
        ge=0,
        le=3600,
        description="How long devices that get free are held for a pod that needs several at once, while "
        "less urgent pods wait for them; 0 for never.",
    )
    resync_seconds: float = Field(
        120.0, ge=1, description="How often the picture of the cluster is compared with complete lists."
    )
    audit_seconds: float = Field(
        60.0, ge=1, description="How often all claims of the cluster are audited while anything changes."
    )
    decision_seconds: float = Field(2.0, gt=0, le=4, description="How long one decision may take.")
    decision_steps: int = Field(2_000_000, gt=0, description="How many steps one decision may take.")
    decision_mebibytes: int = Field(
        256, ge=16, description="By how much the process may grow in one decision, in MiB."
    )
    writers: int = Field(48, ge=1, le=64, description="How many pods are written at a time.")
    attempts_per_minute: int = Field(
        4,
        ge=1,
        description="How often a minute one pod, or one claim, may be given devices, whatever others do to "
        "them; beyond that, pauses grow to two minutes.",
    )
    request_timeout_seconds: float = Field(10.0, gt=0, description="Time-out of a request to the API server.")
    leader_election: bool = Field(True, description="Take turns with other replicas by a Lease.")
    lease_name: str = Field("dovetail", description="Name of the Lease.")
    lease_namespace: str = Field(
        "", description="Namespace of the Lease; empty for that of the pod, or kube-system outside a pod."
    )
    lease_seconds: float = Field(
        15.0, ge=2, le=60, description="How long a Lease that is not renewed keeps others out."
    )
    state_directory: str = Field(
        "",
        description="A directory that only the containers of this pod have (the chart's emptyDir): there a "
        "restarted process proves that its predecessor is dead, takes its Lease at once, and learns which "
        "claims cost too much; empty for none.",
    )
    listen: str = Field(
        "127.0.0.1:8080",
        description="Where /healthz, /readyz and /metrics are served, as host:port; empty for nowhere.",
    )
    log_format: Literal["json", "console"] = Field("json", description="Log as JSON lines, or for people.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="How much is logged.")

    @field_validator("feature_gates")
    @classmethod
    def _gates_exist(cls, value: str) -> str:
        read_gates(value)
        return value

    @field_validator("lease_name", "lease_namespace")
    @classmethod
    def _is_a_name(cls, value: str, info: ValidationInfo) -> str:
        may_be_empty = info.field_name == "lease_namespace"
        if not (may_be_empty and not value) and not _NAME.fullmatch(value):
            raise ValueError(f"{value!r} is no name in Kubernetes: lower-case letters, digits, '-' and '.'")
        return value

    @field_validator("scheduler_names")
    @classmethod
    def _somebody_is_served(cls, value: str) -> str:
        if not read_names(value):
            raise ValueError(f"no scheduler is named in {value!r}: no pod would be served")
        return value

    @field_validator("listen")
    @classmethod
    def _address_is_whole(cls, value: str) -> str:
        if value:
            read_address(value)
        return value

    @property
    def gates(self) -> Mapping[str, bool]:
        """The gates that are set by hand."""
        return read_gates(self.feature_gates)

    @property
    def excludes_dual_mode(self) -> bool:
        """Whether devices that a device plugin offers as well are not given."""
        return self.dual_mode_nodes == "exclude"

    @property
    def schedulers(self) -> frozenset[str]:
        """The schedulers whose pods are served."""
        return read_names(self.scheduler_names)


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return f"DOVETAIL_{name.upper()}"


def first_fault(error: ValidationError) -> tuple[str, str]:
    """The name of a setting that has no valid value, empty where none is concerned, and what is wrong.

    The words name the value.
    """
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    context = first.get("ctx", {})
    if first["type"] == "value_error":
        return name, str(context["error"])
    expected = _EXPECTED.get(first["type"], "has to be another kind of value").format(**context)
    return name, f"{first['input']!r} {expected}"


def settings_from_environment() -> Settings:
    """What the environment sets; raises `SettingInvalid`, which names the variable."""
    try:
        return Settings()
    except ValidationError as error:
        name, words = first_fault(error)
        raise SettingInvalid(variable_of(name), words) from error


def read_names(text: str) -> frozenset[str]:
    """Read `a,b` or `["a","b"]`."""
    names = text.strip().removeprefix("[").removesuffix("]")
    return frozenset(filter(None, (name.strip(' "') for name in names.split(","))))


def read_gates(text: str) -> dict[str, bool]:
    """Read `A=true,B=false`; raises ValueError at an unknown gate or value."""
    gates: dict[str, bool] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        if name not in GATES:
            raise ValueError(f"unknown feature gate {name!r}")
        if value not in ("true", "false"):
            raise ValueError(f"feature gate {name} is true or false, not {value!r}")
        gates[name] = value == "true"
    return gates


def read_address(text: str) -> tuple[str, int]:
    """Read `host:port`, an IPv6 address in brackets; no host means every address of this machine."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} does not end in a colon and a port from 1 to 65535")
    bare = host.removeprefix("[").removesuffix("]")
    if ":" in bare and host != f"[{bare}]":
        raise ValueError(f"the IPv6 address in {text!r} has to stand in brackets, as in [::1]:8080")
    return bare, int(port)
