"""cel-python's grammar is mended, and the mending notices when its target changes."""

import pytest

from dovetail.core.cel import grammar


def test_another_grammar_is_noticed() -> None:
    """A fix that no longer finds its target fails loudly."""
    with pytest.raises(grammar.GrammarChanged, match="member"):
        grammar.mended("expr : IDENT\n")


def test_the_parser_is_our_own() -> None:
    """cel-python's parser, which a whole process shares, stays as it was."""
    from celpy.celparser import CELParser

    before = CELParser.CEL_PARSER
    grammar.parser().parse("a.?b[?c]")
    assert CELParser.CEL_PARSER is before
