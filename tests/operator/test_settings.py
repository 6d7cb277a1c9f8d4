"""Settings: the same by environment and by flag, listed by `dovetail run --help`, refused when wrong."""

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from dovetail.cli.app import app
from dovetail.services.settings import Settings, read_address


def test_each_setting_is_listed_as_flag_and_as_variable() -> None:
    """`dovetail run --help` names them all."""
    shown = CliRunner().invoke(app, ["run", "--help"], env={"COLUMNS": "240", "TERMINAL_WIDTH": "240"})

    assert shown.exit_code == 0
    for name in Settings.model_fields:
        assert f"--{name.replace('_', '-')}" in shown.output, name
        assert f"DOVETAIL_{name.upper()}" in shown.output, name


def test_the_environment_sets_what_flags_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """DOVETAIL_RELEASE=never is --release never."""
    monkeypatch.setenv("DOVETAIL_RELEASE", "never")

    assert Settings().release == "never"


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        ("--claim-generation", "sometimes", "claim-generation"),
        ("--resync-seconds", "soon", "resync-seconds"),
        ("--feature-gates", "DRANothing=true", "unknown feature gate 'DRANothing'"),
        ("--feature-gates", "DRADeviceTaints=yes", "true or false"),
        ("--resync-seconds", "inf", "finite"),
        ("--request-timeout-seconds", "nan", "finite"),
        ("--lease-name", "", "is no name in Kubernetes"),
        ("--lease-name", "Mine", "'Mine' is no name in Kubernetes"),
        ("--lease-namespace", "a_b", "'a_b' is no name in Kubernetes"),
        ("--scheduler-names", " , ", "no scheduler is named"),
        ("--listen", "8080", "'8080' does not end in a colon and a port"),
        ("--listen", "127.0.0.1:", "does not end in a colon and a port"),
        ("--listen", "127.0.0.1:http", "does not end in a colon and a port"),
        ("--listen", "127.0.0.1:65536", "does not end in a colon and a port from 1 to 65535"),
        ("--listen", "::1:8080", "has to stand in brackets"),
    ],
)
def test_a_wrong_value_is_named_with_its_flag(flag: str, value: str, words: str) -> None:
    """The command ends with exit code 2 before anything is started."""
    refused = CliRunner().invoke(app, ["run", flag, value], env={"COLUMNS": "200"})

    assert refused.exit_code == 2
    assert words in refused.output


def test_names_of_schedulers_are_separated_by_commas() -> None:
    """Blanks around them do not count; the chart writes lists as JSON."""
    assert Settings(scheduler_names="a, b").schedulers == {"a", "b"}
    assert Settings(scheduler_names='["a", "b"]').schedulers == {"a", "b"}


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:8080", "127.0.0.1", 8080), ("[::1]:80", "::1", 80), (":8080", "", 8080)],
)
def test_an_address_is_host_and_port(text: str, host: str, port: int) -> None:
    """An IPv6 address stands in brackets; without a host every address of the machine is meant."""
    assert Settings(listen=text).listen == text
    assert read_address(text) == (host, port)


def test_an_unknown_setting_is_refused() -> None:
    """A typing error in code that builds settings does not pass silently."""
    with pytest.raises(ValidationError):
        Settings.model_validate({"relaese": "never"})
