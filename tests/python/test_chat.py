"""Chat templates against jinja2, set up as transformers does; conversations as tokens."""
import json
import random

import pytest

from weft.text import Tokenizer

VARIABLES = {
    "n": 7, "f": 2.5, "s": "Hello World", "l": [3, 1, 2], "d": {"b": 1, "a": "x", "c": [1]}, "empty": [],
    "nul": None, "uni": "Àé ß", "nest": [{"k": 1, "v": "B"}, {"k": 2, "v": "a"}, {"k": 1, "v": "c"}],
}
MESSAGES = [
    {"role": "system", "content": " Be nice. "},
    {"role": "user", "content": "Hello\n<b>\"w\"</b> é日本"},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\nSo 4."},
]


def byte_tokenizer():
    printing = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printing]
    letters = {b: chr(b) for b in printing} | {b: chr(0x100 + i) for i, b in enumerate(others)}
    return Tokenizer.from_json(json.dumps({
        "model": {"type": "BPE", "vocab": {letters[b]: b for b in range(256)}, "merges": []},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "decoder": {"type": "ByteLevel"},
    }))


def test_conversations_become_tokens():
    t = byte_tokenizer()
    text = t.apply_chat_template(MESSAGES[:2], tokenize=False)
    assert text.startswith("<|im_start|>system\n Be nice. <|im_end|>\n") and text.endswith("<|im_start|>assistant\n")
    assert t.decode(t.apply_chat_template(MESSAGES[:2])) == text
    assert not t.apply_chat_template(MESSAGES[:2], tokenize=False, add_generation_prompt=False).endswith("assistant\n")
    shown = t.apply_chat_template([], tools=[{"name": "f"}], documents=[1], tokenize=False, think=True,
                                  chat_template="{{ tools }}{{ documents }}{{ think }}")
    assert shown == "[{'name': 'f'}][1]True"
    with pytest.raises(Exception, match="roles must alternate"):
        t.apply_chat_template(MESSAGES, chat_template="{{ raise_exception('roles must alternate') }}")


class RandomTemplate:
    """Templates that are most often errors, and the same text where they are none."""
    names = [*VARIABLES, "messages", "undef", "loop", "a", "b"]
    constants = ["1", "-3", "2.5", "'a'", "' x\\n'", "[1, 2, 3]", "{'a': 1}", "(1, 2)", "true", "none", "'é'"]
    filters = ["trim", "upper", "title", "length", "first", "last", "join(',')", "list", "string", "int", "float",
               "sort", "unique|list", "reverse|list", "tojson", "tojson(indent=2)", "default('D')", "items|list",
               "map('string')|list", "select|list", "sum", "max", "replace('a', 'b')", "round", "dictsort",
               "map(attribute='role')|list", "selectattr('role')|list", "groupby('k')|list", "wordwrap(4)", "sort(attribute='k,v')"]
    tests = ["defined", "undefined", "none", "string", "mapping", "iterable", "number", "integer", "boolean",
             "divisibleby(3)", "even", "eq(7)", "in([7, 'a'])"]
    methods = ["strip()", "split()", "split('l')", "get('a')", "startswith('H')", "find('o')", "role", "index"]
    operators = ["+", "-", "*", "//", "~", "==", "<", ">=", "in", "not in", "and", "or"]
    spaces = ["", " ", "\n", "  \n  ", "text", "\n\n", "é"]

    def __init__(self, seed):
        self.r = random.Random(seed)

    def value(self, depth):
        r = self.r
        kind = r.randrange(10) if depth else r.randrange(2)
        if kind < 2:
            return r.choice(self.names if kind else self.constants)
        x = self.value(depth - 1)
        return {2: lambda: f"({x} {r.choice(self.operators)} {self.value(depth - 1)})",
                3: lambda: f"{x} {r.choice(self.operators)} {self.value(depth - 1)}",
                4: lambda: f"({x})|{r.choice(self.filters)}",
                5: lambda: f"({x} is {r.choice(['', 'not '])}{r.choice(self.tests)})",
                6: lambda: f"({x}).{r.choice(self.methods)}",
                7: lambda: f"({x})[{r.choice(['0', '-1', '1:', '::-1', ':2'])}]",
                8: lambda: f"({x} if {self.value(depth - 1)} else {self.value(depth - 1)})",
                9: lambda: f"not {x}"}[kind]()

    def tag(self, text):
        r = self.r
        return "{%" + r.choice(["", "-", "+"]) + f" {text} " + r.choice(["", "-", "+"]) + "%}"

    def block(self, depth):
        return "".join(self.r.choice(self.spaces) + self.statement(depth) for _ in range(3)) + self.r.choice(self.spaces)

    def statement(self, depth):
        r = self.r
        kind = r.randrange(6) if depth else 0
        if kind < 2:
            return "{{" + r.choice(["", "-"]) + f" {self.value(2)} " + r.choice(["", "-"]) + "}}"
        if kind == 2:
            return self.tag(f"set {r.choice('ab')} = {self.value(2)}")
        if kind == 3:
            return self.tag(f"if {self.value(1)}") + self.block(depth - 1) + self.tag("else") + self.block(depth - 1) + self.tag("endif")
        if kind == 4:
            return self.tag(f"for a in {r.choice(['l', 'd', 'messages', 's'])}") + self.block(depth - 1) + self.tag("endfor")
        return self.tag("macro m(a, b=1)") + self.block(depth - 1) + self.tag("endmacro") + "{{ m(2) }}"


def test_random_templates_give_what_jinja_gives():
    jinja2 = pytest.importorskip("jinja2")
    sandbox = pytest.importorskip("jinja2.sandbox")
    environment = sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                        extensions=["jinja2.ext.loopcontrols"])
    environment.filters["tojson"] = lambda x, indent=None: json.dumps(x, ensure_ascii=False, indent=indent)
    t = byte_tokenizer()
    compared = 0
    for seed in range(1500):
        made = RandomTemplate(seed)
        source = made.block(2) if seed % 2 else "{{ " + made.value(3) + " }}"
        try:
            given = {**VARIABLES, "messages": MESSAGES, "tools": None, "documents": None,
                     "add_generation_prompt": True, "bos_token": "", "eos_token": ""}
            want = environment.from_string(source).render(**json.loads(json.dumps(given)))
        except Exception:
            continue
        if " object at 0x" in want or "<Loop" in want or "Markup(" in want or "dict_items" in want:
            continue
        compared += 1
        got = t.apply_chat_template(MESSAGES, tokenize=False, chat_template=source, **VARIABLES)
        assert got == want, source
    assert compared > 300
    assert jinja2.__version__
