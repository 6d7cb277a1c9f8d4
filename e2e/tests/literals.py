"""Texts and numbers of which random expressions are made: the odd ones of every library."""

import json
from typing import Final

TEXTS: Final = (
    *(
        "",
        "a",
        "b",
        "abc",
        "a,b,c",
        "A-Z_9",
        "\u00e9\U0001f600x",
        " \tpad\u00a0 ",
        "gpu-0",
        "numa0-pcie1-nic0",
    ),
    *("0", "1", "-7", "+3", "12", "1.5", "1e3", "0x1F", "NaN", "true", "False", "t", "9223372036854775808"),
    *("1Ki", "1.5Gi", "-2M", "1000m", "1e3", "0.1n", "3.", "12E", "1.0.0", "v1.2", "1.2.3-rc.1+b5", "01.2.3"),
    *("10.0.0.1", "10.0.0.0/8", "10.1.2.3/16", "::1", "fe80::/10", "2001:db8::1/64", "::ffff:1.2.3.4"),
    *(
        "127.0.0.1",
        "224.0.0.1",
        "169.254.1.1/24",
        "255.255.255.255",
        "fe80::1%eth0",
        "01.2.3.4",
        "10.0.0.0/33",
    ),
    *(
        "http://u:p@h.example:80/a%20b?x=1&y=2&x=3#f",
        "/a/b?q",
        "mailto:x@y",
        "http://[::1]:8080/",
        "http://h:x/",
    ),
    *("2024-02-29T12:34:56Z", "2024-02-29T12:34:56.123456789+02:00", "1969-12-31T23:59:59-08:00"),
    *(
        "1h",
        "-1.5h",
        "90m",
        "1s500ms",
        "3ns",
        "1d",
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "+05:30",
        "-08:00",
    ),
    *("[a-z]+", "^a", "b$", "(a|b)*", "\\d+", "[", "a{2,3}", "(?i)ABC", ".", "x*"),
    *("%s", "%d", "%s-%s", "%.2f", "%e", "%x %X", "%b", "%o", "%%", "%", "%q"),
    *(
        "my-name",
        "My.Name",
        "example.com/key",
        "-bad",
        "123e4567-e89b-12d3-a456-426614174000",
        "aGk=",
        "2024-02-30",
    ),
    *("dns1123Label", "uuid", "uri", "labelValue", "NVIDIA H100 80GB HBM3", "0000:1b:00.0", "pci0000:15"),
)
INTS: Final = (0, 1, 2, 3, -1, 5, 7, 10, 63, 64, -64, 255, 1024, 1 << 31, 1 << 53, (1 << 63) - 1, -(1 << 63))
UINTS: Final = (0, 1, 2, 3, 10, 255, 1 << 32, (1 << 63), (1 << 64) - 1)
DOUBLES: Final = ("0.0", "1.0", "2.5", "-1.5", "10.0", "0.1", "1e10", "-1e-7", "1e300", "9007199254740993.0")


def text_literal(text: str) -> str:
    """A string as CEL writes it."""
    return json.dumps(text, ensure_ascii=True).replace("\\ud83d\\ude00", "\\U0001f600")
