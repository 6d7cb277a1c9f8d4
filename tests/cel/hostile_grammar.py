"""Expressions that double, nest, repeat and compare, written from a seed."""

from random import Random
from typing import Final

from tests.cel.devices import DOMAIN


class Hostile:
    """Writes expressions that double, nest, repeat and compare, from a seed."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._names = 0

    def expression(self) -> str:
        """One expression of at most 10 KiB."""
        while True:
            self._names = 0
            text = self.whole()
            if len(text.encode()) <= 10_240:
                return text

    def whole(self) -> str:
        """A tower, or a sum of values, made into something that a mapping may give."""
        rng = self.random
        shape = rng.random()
        if shape < 0.55:
            return self.tower()
        if shape < 0.75:
            return self.loops()
        if shape < 0.85:
            return self.links()
        kind = rng.choice(tuple(SCALARS))
        return rng.choice(SCALARS[kind]).replace("@", self.value(kind, 4))

    def name(self) -> str:
        """A variable that is new."""
        self._names += 1
        return f"v{self._names}"

    def tower(self) -> str:
        """A value that grows with every binding, and then something that goes through all of it."""
        rng = self.random
        kind = rng.choice(("list", "list", "string", "map", "bytes", "optional"))
        start, height = self.value(kind, 1), rng.choice((1, 3, 8, 20, 40, 60, 80))
        grow = [rng.choice(GROWTH[kind]) for _ in range(rng.choice((1, 1, 2, 3)))]
        names = [self.name() for _ in range(height + 1)]
        body = rng.choice(USES[kind]).replace("@", names[-1])
        if rng.random() < 0.4:
            body = rng.choice(AROUND).replace("@", body)
        for level in range(height, 0, -1):
            grown = grow[level % len(grow)].replace("@", names[level - 1])
            body = f"cel.bind({names[level]}, {grown}, {body})"
        return f"cel.bind({names[0]}, {start}, {body})"

    def loops(self) -> str:
        """Loops within loops."""
        rng = self.random
        body, depth = rng.choice(BODIES), rng.choice((1, 2, 3, 6, 12, 30, 60))
        for _ in range(depth):
            loop = rng.choice(LOOPS)
            body = loop.replace("@", body).replace("#", self.value("list", 1)).replace("x", self.name())
        return f"dyn({body}) == dyn({rng.choice(('1', '[]', 'true'))})"

    def links(self) -> str:
        """One link after another."""
        rng = self.random
        link, times = rng.choice(LINKS), rng.choice((3, 10, 12, 40, 200))
        start, end = link[0], link[2]
        return (start + link[1] * times + end).replace("x", self.name())

    def value(self, kind: str, depth: int) -> str:
        """An expression of this kind."""
        rng = self.random
        form = rng.choice(VALUES[kind])
        if depth <= 0:
            form = VALUES[kind][0]
        for mark, inner in (
            ("$l", "list"),
            ("$s", "string"),
            ("$m", "map"),
            ("$b", "bytes"),
            ("$o", "optional"),
        ):
            while mark in form:
                form = form.replace(mark, self.value(inner, depth - 1), 1)
        while "$n" in form:
            form = form.replace("$n", str(rng.choice((0, 1, 7, 64, 300, 1000, 9000, 100_000, 900_000))), 1)
        while "$t" in form:
            form = form.replace("$t", rng.choice(TEXTS) * rng.choice((1, 1, 5, 50, 400)), 1)
        while "$p" in form:
            form = form.replace("$p", rng.choice(PATTERNS), 1)
        while "$q" in form:
            form = form.replace("$q", rng.choice(ODD_TEXTS), 1)
        return form


_READ = f'device.attributes["{DOMAIN}"]'

TEXTS: Final = ("a", "ab", "b\\\\", '\\"', "€", "😀", "1", "%41", "1.", "0", " ", "\\u00e4", "a=1&", "%s")
ODD_TEXTS: Final = (
    "1e4096",
    "-9223372036854775808",
    "1" * 4000,
    "." * 50,
    "1.2.3-" + "a." * 400 + "1",
    "9" * 300 + "Ki",
    "v1",
    "1.0.0+" + "b" * 900,
    "::ffff:1.2.3.4",
    "10.0.0.0/8",
    "2001:db8::/32",
    "1" * 300 + "h",
    "http://[::1]:80/" + "%20" * 300,
    "/?" + "a=%41&" * 300,
    "2024-01-01T00:00:00Z",
    "x" * 5000,
    "",
)
PATTERNS: Final = (
    "a",
    "(a*)*b",
    "(a|a.*c)",
    "[ab]*a[ab]{12}c",
    "[ab]*a[ab]{500}",
    "(?:a|b|ab){900}c",
    "\\\\pL{10}",
    "\\\\pL{100}",
    "(?i)a.*b",
    "(((a{10}){10}){10})",
    "(.*)(.*)(.*)(.*)x",
    "(" * 200 + "a" + ")" * 200,
    "a?" * 300 + "a" * 300,
    "",
    "^",
    "\\\\b",
    "|".join(f"a{number}" for number in range(300)),
    "[^a]" * 500,
    "(?:.*a){300}c",
)

VALUES: Final[dict[str, tuple[str, ...]]] = {
    "list": (
        "[]",
        "[1]",
        "[[]]",
        "['a', 'b']",
        "lists.range($n)",
        "[$s, $s]",
        "[$l, $l]",
        "[dyn($l), dyn($s), dyn($m)]",
        f"{_READ}.numbers",
        f"{_READ}.texts",
        f"{_READ}.versions",
        "$s.split('')",
        "$s.split('a')",
        "$s.findAll('$p')",
        "$l.reverse()",
        "$l + $l",
        "$l.distinct()",
        "dyn($l).sort()",
        "[$l, $l].flatten()",
        "lists.range($n).map(i, i)",
        "[1, 2, 3].map(i, $s)",
        "$l.slice(0, 1)",
        "[?$o, ?$o]",
        "[$o, $o].unwrapOpt()",
        "[3, 1].sortBy(i, -i)",
        "lists.range($n).transformList(i, j, i + j)",
        "google.protobuf.ListValue{values: $l}",
    ),
    "string": (
        "'a'",
        "'$t'",
        "'$q'",
        "'$t'",
        f"{_READ}.text",
        "device.driver",
        "$s + $s",
        "$s.replace('a', '$t')",
        "$s.upperAscii()",
        "strings.quote($s)",
        "'%s'.format([$l])",
        "'%s %x'.format([$m, $s])",
        "$s.trim()",
        "['$t', $s].join('$t')",
        "$s.substring(0)",
        "string($b)",
        "'%.$nf'.format([1.5])",
        "$s.find('$p')",
        "url('/$t').getEscapedPath()",
        "string(duration('1h'))",
        "dyn($l)[0]",
        "$s.charAt(0)",
    ),
    "map": (
        "{}",
        "{'a': 1}",
        "{'a': $l, 'b': $l}",
        "{'a': $m, 'b': $m}",
        "{1: $s, 2: $s}",
        "device.attributes",
        "lists.range($n).transformMapEntry(i, x, {i: x})",
        "{'a': 1}.transformMap(k, v, $l)",
        "{?'a': $o}",
        "google.protobuf.Struct{fields: {'a': dyn($l)}}",
        "url('/?$t').getQuery()",
        "{dyn($l): 1}",
    ),
    "bytes": ("b''", "bytes($s)", "b'$t'", "$b + $b"),
    "optional": (
        "optional.of(1)",
        "optional.of($l)",
        "optional.none()",
        "optional.ofNonZeroValue($l)",
        "$m.?a",
        "$l[?0]",
        "optional.of($l).optMap(x, x)",
        "optional.of($s).optFlatMap(x, optional.of(x))",
        "$l.first()",
        "$o.or($o)",
    ),
}
"""Expressions by kind; the first of each stands alone."""

GROWTH: Final[dict[str, tuple[str, ...]]] = {
    "list": (
        "[@, @]",
        "@ + @",
        "[@, [@]]",
        "[dyn(@), dyn({'a': @})]",
        "[dyn(optional.of(@)), dyn(@)]",
        "@.map(x, @)",
        "[@, @].flatten()",
        "@.reverse() + @",
        "[[@, @], [@]]",
        "lists.range(2).map(x, @)",
        "@.distinct() + @",
        "google.protobuf.ListValue{values: [dyn(@), dyn(@)]}",
        "[@].transformList(i, x, [x, x])",
        "dyn([@, @]).sort()",
    ),
    "string": (
        "@ + @",
        "@.replace('a', 'aaaaaaaa')",
        "@.replace('', @)",
        "'%s%s'.format([@, @])",
        "[@, @].join(@)",
        "strings.quote(@)",
        "strings.quote(@ + @)",
        "@.split('').join('ab')",
        "string(bytes(@ + @))",
        "@ + '€'",
        "'%s'.format([[@, @]])",
        "'%x'.format([@])",
        "'%s'.format([{@: @}])",
        "@.findAll('.').join(@)",
    ),
    "map": (
        "{'a': @, 'b': @}",
        "{'a': dyn(@), 'b': dyn([@, @])}",
        "dyn({@: @})",
        "{'a': @}.transformMap(k, v, [v, v])",
        "dyn(google.protobuf.Struct{fields: {'a': dyn(@), 'b': dyn(@)}})",
        "dyn([@, @].transformMapEntry(i, x, {i: x}))",
    ),
    "bytes": ("@ + @", "bytes('%x'.format([@]))", "bytes(string(@) + string(@))"),
    "optional": (
        "optional.of([@, @])",
        "@.optMap(x, [x, x])",
        "@.optFlatMap(x, optional.of([x, x]))",
        "optional.of({@: @})",
        "optional.of([@, @].unwrapOpt())",
        "@.or(@)",
    ),
}
"""How a tower grows: `@` is the floor below."""

USES: Final[dict[str, tuple[str, ...]]] = {
    "list": (
        "@ == @",
        "@ != @",
        "@.flatten(60).size()",
        "@.flatten(1).size()",
        "@.distinct().size()",
        "dyn(@).sum() == 0",
        "sets.equivalent(@, @)",
        "sets.contains(@, @)",
        "sets.intersects(@, [@])",
        "@ in [@, @]",
        "[@].indexOf(@)",
        "[@].lastIndexOf(@)",
        "'%s'.format([@]).size()",
        "dyn(@).isSorted()",
        "dyn(@).max() == 1",
        "@.includes(@)",
        "@.all(x, x == @)",
        "lists.range(1000).all(x, @ == @)",
        "@.exists_one(x, @.exists(y, x == y))",
        "dyn({dyn(@): 1})[@] == 1",
        "@.map(x, @.map(y, x == y)).size()",
        "@.sortBy(x, '%s'.format([x])).size()",
        "[@, @].transformMapEntry(i, x, {x: i}).size()",
        "google.protobuf.ListValue{values: dyn(@)} == dyn(@)",
        "dyn(@).join(',')",
        "[[@, @], [@, @]].distinct() == [[@]]",
        "@",
        "@.reverse() == @",
        "@[0] == @[0]",
        "dyn(@) == dyn([@])",
        "optional.of(@) == optional.of(@)",
        "{'a': @} == {'a': @}",
        "@.size() > @.flatten().size()",
    ),
    "string": (
        "@.size()",
        "@",
        "@ == @ + 'a'",
        "@.findAll('$p').size()",
        "@.findAll('a').size()",
        "@.findAll('').size()",
        "@.matches('(a*)*b')",
        "@.matches('[ab]*a[ab]{500}')",
        "'a'.matches(@)",
        "@.matches(@)",
        "@.split('').size()",
        "@.lastIndexOf(@)",
        "@.indexOf('b' + @)",
        "@.lastIndexOf('b' + @)",
        "@.contains(@ + 'b')",
        "isSemver(@)",
        "isSemver('1.0.0-' + @)",
        "isQuantity(@)",
        "isURL('/' + @)",
        "url('/?' + @).getQuery().size()",
        "isIP(@)",
        "isCIDR(@ + '/8')",
        "double(@)",
        "int(@)",
        "duration(@) == duration(@)",
        "timestamp(@) == timestamp(@)",
        "bytes(@) == bytes(@)",
        "'%s'.format([@]).size()",
        "@.lowerAscii() == @",
        "@.trim().reverse() == @",
        "lists.range(1000).all(x, @ < @ + 'a')",
        "lists.range(1000).map(x, @.substring(1)).size()",
        "format.dns1123Subdomain().validate(@).hasValue()",
        "format.uri().validate(@).hasValue()",
        "{@: 1}[@]",
        "[@, @].distinct().size()",
        "@.upperAscii().replace('A', @)",
        "timestamp(0).getHours(@)",
        "strings.quote(@)",
        "lists.range(1000).map(x, @.replace('a', 'b')).size()",
        "quantity(@).isGreaterThan(quantity(@))",
        "semver(@).compareTo(semver(@))",
        "semver('1.0.0-' + @).isLessThan(semver('1.0.0-' + @))",
    ),
    "map": (
        "@ == @",
        "dyn(@) == dyn(@)",
        "@.size()",
        "'%s'.format([@]).size()",
        "@.all(k, k in @)",
        "[@].includes(@)",
        "@.exists(k, v, v == @)",
        "dyn({dyn(@): 1})[@] == 1",
        "[@, @].distinct().size()",
        "@.?a.?b.?a.hasValue()",
        "google.protobuf.Struct{fields: dyn(@)} == dyn(@)",
        "@.transformMap(k, v, v).size()",
    ),
    "bytes": (
        "@.size()",
        "@ == @",
        "string(@)",
        "'%x'.format([@])",
        "google.protobuf.BytesValue{value: @} == @",
    ),
    "optional": (
        "@ == @",
        "@.hasValue()",
        "@.value() == @.value()",
        "@.optMap(x, x == x).hasValue()",
        "[@, @].unwrapOpt() == []",
        "[@].distinct().size()",
        "dyn({dyn(@): 1}).size()",
    ),
}
"""What goes through all of a tower."""

AROUND: Final = (
    "lists.range(1000).all(i, @ == @)",
    "[1, 2, 3].map(i, @) == []",
    "lists.range(100000).exists(i, @ == 'x')",
    "optional.of(@).optMap(o, o).hasValue()",
    "[@, @] == [@, @]",
    "(@) == (@) ? @ : @",
    "'%s'.format([@])",
)

LOOPS: Final = (
    "#.map(x, @)",
    "[1, 2].map(x, @)",
    "lists.range(1000).all(x, dyn(@) == dyn(x))",
    "[1].exists(x, dyn(@) == dyn(1))",
    "#.filter(x, dyn(@) != dyn(x))",
    "[1, 2].exists_one(x, dyn(@) == dyn(x))",
    "[1, 2].transformList(i, x, @)",
    "{'a': 1}.transformMap(x, w, @)",
    "[1, 2].transformMapEntry(i, x, {i: dyn(@)})",
    "[2, 1].sortBy(x, x + 1).map(x, @)",
    "optional.of(1).optMap(x, @).orValue(dyn(0))",
    "optional.of(1).optFlatMap(x, optional.of(@)).value()",
    "cel.bind(x, @, dyn([x, x]))",
    "cel.bind(x, [], x + [dyn(@)] + x)",
    "lists.range(300).map(x, x).map(x, dyn(@))",
)
BODIES: Final = (
    "1",
    "[]",
    "'a'",
    "lists.range(1000)",
    "'%s'.format([lists.range(1000)])",
    "x",
    f"{_READ}.texts",
)
LINKS: Final = (
    ("optional.of(1)", ".optMap(x, x)", ".hasValue()"),
    ("optional.of([1])", ".optMap(x, x + x)", ".hasValue()"),
    ("optional.of(1)", ".optFlatMap(x, optional.of(x))", ".hasValue()"),
    ("optional.of({'a': 1})", ".optMap(x, x).?a.optMap(x, {'a': x})", ".hasValue()"),
    ("dyn([[1]])", "[0]", " == 1"),
    ("dyn(device)", ".attributes", " == 1"),
    ("dyn({})", ".?a", ".hasValue()"),
    ("'a'", ".replace('a', 'aa')", ""),
    ("[1]", ".map(x, x)", ".size()"),
    ("[[1]]", ".flatten().map(x, [x])", ".size()"),
    ("1", " + 1", ""),
    ("true", " && true", ""),
    ("'a'", " + 'a'", ""),
    ("", "-", "1"),
    ("", "!", "true"),
    ('r"""', "\r", ""),
    ("", "(", "1"),
    ("", "[", "] == []"),
    ("", "true ? 1 : ", "1"),
    ("quantity('1e4000')", ".add(quantity('1e4000'))", ".isInteger()"),
    ("", "optional.of(", "1"),
)
SCALARS: Final[dict[str, tuple[str, ...]]] = {
    "list": ("@", "@ == @", "@.size()", "dyn(@) == dyn(1)"),
    "string": ("@", "@ == 'a'", "@.size()"),
    "map": ("@.size()", "@ == @"),
    "bytes": ("@.size()", "@ == @"),
    "optional": ("@.hasValue()", "@ == @"),
}
