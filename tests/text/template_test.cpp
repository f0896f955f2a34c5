// Expected texts are what jinja2 3.1 gives in transformers' set-up; tests/python/test_chat.py
// compares random templates with it.
#include "weft/text/template.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"

namespace weft::text {
namespace {

constexpr const char* kVariables = R"({
  "n": 7, "f": 2.5, "s": "Hello World", "l": [3, 1, 2], "d": {"b": 1, "a": "x", "c": [1]},
  "empty": [], "nul": null, "uni": "ßtraße É",
  "nest": [{"k": 1, "v": "B"}, {"k": 2, "v": "a"}, {"k": 1, "v": "c"}],
  "messages": [{"role": "system", "content": " Be nice. "}, {"role": "user", "content": "é日本"},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\nSo 4."}],
  "tool": {"name": "f", "parameters": {"x": [1, 2.0, true, null], "q": "a\"b\né"}}})";

std::string render(std::string_view source, const RenderOptions& options = {}) {
  return JinjaTemplate(source).render(kVariables, options);
}
std::string value(const std::string& expression) { return render("{{ " + expression + " }}"); }

struct Pair {
  const char *source, *want;
};

TEST(JinjaTemplate, ComputesAsPythonDoes) {
  constexpr Pair kPairs[] = {
      {"-7 // 2", "-4"},
      {"-7 % 3", "2"},
      {"7 / 2", "3.5"},
      {"2 ** 10", "1024"},
      {"2 ** -1", "0.5"},
      {"1e16", "1e+16"},
      {"0.1 + 0.2", "0.30000000000000004"},
      {"1e3", "1000.0"},
      {"1 < 2 < 3", "True"},
      {"1 < 3 < 2", "False"},
      {"n == 7.0", "True"},
      {"-2 ** 2", "4"},
      {"'a' ~ 1 ~ none ~ 1.5", "a1None1.5"},
      {"'ab' * 2 + 'c'", "ababc"},
      {"[1] * 2 + [3]", "[1, 1, 3]"},
      {"not n or s", "Hello World"},
      {"'ell' in s and 9 not in l", "True"},
      {"'x' if empty else 'y' if nul else 'z'", "z"},
      {"'a' if nul", ""},
      {"s[::-1]", "dlroW olleH"},
      {"l[-2:]", "[1, 2]"},
      {"uni[1:4]", "tra"},
      {"l[9]", ""},
      {"[1, \"a'b\", none, (1,), {'k': true}]", "[1, \"a'b\", None, (1,), {'k': True}]"},
      {"0x1F + 1_0", "41"},
      {"'\\u00e9' 'x\\n'", "éx\n"},
      {"n is odd and n is not none", "True"},
      {"messages[0].zz is defined", "False"},
      {"d is mapping and l is not string", "True"},
      {"undef == undef2", "True"},
      {"undef | length", "0"},
      {"3 | string | length", "1"},
      {"range(5, 0, -2) | list", "[5, 3, 1]"},
      {"namespace(a=1).a + dict(b=2).b", "3"},
  };
  for (const auto& [source, want] : kPairs) EXPECT_EQ(value(source), want) << source;
}

TEST(JinjaTemplate, HasTheFiltersAndMethods) {
  constexpr Pair kPairs[] = {
      {"uni | upper", "SSTRASSE É"},
      {"uni | title", "SStraße É"},
      {"'a-b c' | title", "A-B C"},
      {"' x ' | trim ~ '|'", "x|"},
      {"'xxaxx'.strip('x')", "a"},
      {"l | sort | join(',')", "1,2,3"},
      {"s | reverse", "dlroW olleH"},
      {"nest | sort(attribute='k', reverse=true) | map(attribute='v') | join", "aBc"},
      {"l | sum + l | max", "9"},
      {"d | dictsort | first", "('a', 'x')"},
      {"d.items() | list", "[('b', 1), ('a', 'x'), ('c', [1])]"},
      {"d.get('z', 'q')", "q"},
      {"nest | selectattr('k', 'eq', 1) | map(attribute='v') | join", "Bc"},
      {"nest | rejectattr('k', 'eq', 1) | list | length", "1"},
      {"l | select('odd') | list", "[3, 1]"},
      {"['B', 'a', 'b'] | unique | list", "['B', 'a']"},
      {"l | map('string') | join('-')", "3-1-2"},
      {"nul | default('x')", "None"},
      {"nul | default('x', true)", "x"},
      {"undef | d('x')", "x"},
      {"'3.7' | int + '2.5' | float", "5.5"},
      {"2.567 | round(2)", "2.57"},
      {"2.5 | round", "2.0"},
      {"'a\\nb\\n\\nc' | indent(2)", "a\n  b\n\n  c"},
      {"'<a>' | e", "&lt;a&gt;"},
      {"s.split('o')", "['Hell', ' W', 'rld']"},
      {"s.rsplit('o', 1)", "['Hello W', 'rld']"},
      {"' a  b '.split()", "['a', 'b']"},
      {"s.startswith(('x', 'He'))", "True"},
      {"s.find('W')", "6"},
      {"s | replace('l', 'L', 2)", "HeLLo World"},
      {"'{:>4}|{b:.1f}'.format('q', b=2.25)", "   q|2.2"},
      {"'%s=%03d' % ('a', 7)", "a=007"},
      {"l | batch(2) | list", "[[3, 1], [2]]"},
      {"(s ~ ' ßÀ').swapcase()", "hELLO wORLD SSà"},
      {"'-7'.zfill(4) ~ 'é'.zfill(3) ~ '+1234'.zfill(2)", "-00700é+1234"},
      {"[1, 2, 3, 4, 5] | slice(3) | list", "[[1, 2], [3, 4], [5]]"},
      {"'abc' | slice(2, '-') | list", "[['a', 'b'], ['c', '-']]"},
      {"'Hello big World' | truncate(11) ~ '|' ~ 'Hello big World' | truncate(9)",
       "Hello big World|Hello..."},
      {"'日本語日本語' | truncate(4, true, '…', 0)", "日本語…"},
      {"'a b/é~' | urlencode", "a%20b/%C3%A9~"},
      {"{'q': 'a b/', 'é': 1} | urlencode ~ '&' ~ [('x', '=')] | urlencode",
       "q=a+b%2F&%C3%A9=1&x=%3D"},
      {"messages[2].content.split('</think>')[-1].lstrip('\\n')", "So 4."},
      {"tool | tojson",
       R"({"name": "f", "parameters": {"x": [1, 2.0, true, null], "q": "a\"b\né"}})"},
      {"{'a': [1, {}], 'b': []} | tojson(indent=2)",
       "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}"},
      {"d | tojson(separators=(',', ':'), sort_keys=true)", R"({"a":"x","b":1,"c":[1]})"},
  };
  for (const auto& [source, want] : kPairs) EXPECT_EQ(value(source), want) << source;
}

TEST(JinjaTemplate, GroupsSortsAndWraps) {
  constexpr Pair kPairs[] = {
      {"nest | groupby('k')",
       "[(1, [{'k': 1, 'v': 'B'}, {'k': 1, 'v': 'c'}]), (2, [{'k': 2, 'v': 'a'}])]"},
      {"(nest + [{'v': 'b'}]) | groupby('v') | map(attribute='grouper') | join", "aBc"},
      {"(nest + [{'v': 'b'}]) | groupby('v', case_sensitive=true) | map(attribute='list') | "
       "map('length') | join",
       "1111"},
      {"(nest + [{}]) | groupby('k', default=0) | map('first') | join(',')", "0,1,2"},
      {"(nest | groupby('k'))[0].list | map(attribute='v') | join", "Bc"},
      {"(1, [2]).grouper is defined", "False"},
      {"nest | sort(attribute='k,v', reverse=true) | map(attribute='v') | join", "acB"},
      {"[{}, {}] | sort(attribute='k')", "[{}, {}]"},
      {"'a well-known self-made x--y word' | wordwrap(8)",
       "a well-\nknown\nself-\nmade x--\ny word"},
      {"'a well-known self-made x--y word' | wordwrap(8, break_on_hyphens=false, wrapstring='/')",
       "a well-k/nown sel/f-made/x--y/word"},
      {"'日本語日本語\n\nq' | wordwrap(4)", "日本語日\n本語\n\nq"},
      {"'abcdefgh ij' | wordwrap(3, false)", "abcdefgh\nij"},
      {"'abcd efghijkl' | wordwrap(5) | tojson", "\"abcd \\nefghi\\njkl\""},
      {"'<a>' | forceescape", "&lt;a&gt;"},
      {"('{\"a\": [1, null]}' | fromjson).a", "[1, None]"},
      {"2.5 is even or 3.0 is even or 4.5 is divisibleby(1.5)", "True"},
      {"'aB'.islower() ~ 'AB 1'.isupper() ~ '1²'.isnumeric() ~ 'é'.isascii()",
       "FalseTrueTrueFalse"},
      {"'%(a)s %(b)03d' % {'a': 'x', 'b': 7} ~ '%s' % [1] ~ 'q' % [1]", "x 007[1]q"},
      {"'{a[0]}{b.c}{0[k][1]}'.format({'k': [1, 2]}, a=[7], b={'c': 8})", "782"},
      {"dict.fromkeys(['a', 'b'], 0) ~ dict.fromkeys('xy')",
       "{'a': 0, 'b': 0}{'x': None, 'y': None}"},
  };
  for (const auto& [source, want] : kPairs) EXPECT_EQ(value(source), want) << source;
}

TEST(JinjaTemplate, HasStateInCyclersJoinersAndLoops) {
  constexpr Pair kPairs[] = {
      {"{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{% "
       "set x = c.reset() %}{{ c.current }}",
       "ababa"},
      {"{% set j = joiner(' | ') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}", "3 | 1 | 2"},
      {"{% for x in [1, 1, 2, 1] %}{{ x if loop.changed(x) }},{% endfor %}", "1,,2,1,"},
      {"{% for x in [[1, [2, 3]], 4] recursive %}{{ loop.depth }}{{ '(' ~ loop(x) ~ ')' if x is "
       "not "
       "number else x }}{% endfor %}",
       "1(212(3233))14"},
      {"{% for x in [[[]], []] if x != 1 recursive %}<{{ loop(x) }}>{% else %}e{% endfor %}",
       "<<e>><e>"},
  };
  for (const auto& [source, want] : kPairs) EXPECT_EQ(render(source), want) << source;
}

TEST(JinjaTemplate, RunsStatements) {
  constexpr Pair kPairs[] = {
      {"{% for x in l if x > 1 %}{{ loop.index }}{{ x }}{{ loop.last }} {% else %}none{% endfor %}",
       "13False 22True "},
      {"{% for x in l if x > 5 %}{% else %}none{% endfor %}", "none"},
      {"{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{{ loop.previtem }}{% "
       "endfor %}",
       "321"},
      {"{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "3"},
      {"{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }},{% endfor %}{{ x }}", "4,2,3,1"},
      {"{% set ns = namespace(a=0) %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a "
       "}}",
       "6"},
      {"{% set t | upper | trim %} a{{ n }} {% endset %}[{{ t }}]", "[A7]"},
      {"{% set a, b = (1, 2) %}{{ b }}{% with a = 5, c = b %}{{ a + c }}{% endwith %}{{ a }}",
       "271"},
      {"{% macro m(a, b='d', c=a) %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ m(1) }}{{ m(b=5, a=3) "
       "}}",
       "1d1;353;"},
      {"{% macro m(t) %}<{{ caller(t) }}>{% endmacro %}{% call(u) m(4) %}{{ u + n }}{% endcall %}",
       "<11>"},
      {"{% filter upper %}a{{ s }}{% endfilter %}", "AHELLO WORLD"},
      {"{% if empty %}a{% elif n %}b{% else %}c{% endif %}", "b"},
      {"{% for k, v in d.items() %}{{ k }}{{ v }}{% endfor %}{{ loop is defined }}",
       "b1axc[1]False"},
  };
  for (const auto& [source, want] : kPairs) EXPECT_EQ(render(source), want) << source;
}

TEST(JinjaTemplate, KeepsWhiteSpaceAsTrimBlocksAndLstripBlocksSay) {
  constexpr Pair kPairs[] = {
      {"a\n  {% if n %}\n  b\n  {% endif %}\nc\n", "a\n  b\nc"},
      {"a {%- if n %} b {%- endif %} c", "a b c"},
      {"{{ n -}}  \n x {{- n }} ", "7x7 "},
      {"  {%+ if n %}x{% endif +%}\ny", "  x\ny"},
      {"  {# c #}\nx{#- d -#}  y", "xy"},
      {"a {% raw %}{{ x }}{% endraw %}\nb", "a {{ x }}b"},
      {"x  {% set y = 1 %}\n\n{{ y }}", "x  \n1"},
      {"{{ '}}' }}{{ {'a': {'b': 1}}.a.b }}\r\nz", "}}1\nz"},
  };
  for (const auto& [source, want] : kPairs) EXPECT_EQ(render(source), want) << source;
}

TEST(JinjaTemplate, SaysWhereTheModelsWordsAre) {
  std::vector<std::pair<size_t, size_t>> generated;
  RenderOptions options;
  options.generated = &generated;
  EXPECT_EQ(render("a{% generation %}bc{% endgeneration %}d", options), "abcd");
  ASSERT_EQ(generated.size(), 1u);
  EXPECT_EQ(generated[0], (std::pair<size_t, size_t>{1, 3}));
}

TEST(JinjaTemplate, TellsTheTime) {
  RenderOptions options;
  options.now = 1700000000;
  EXPECT_EQ(render("{{ strftime_now('%Y %b') }}", options), "2023 Nov");
  EXPECT_EQ(render("{{ strftime_now('%Z%z|%f|%%f %Y%') }}", options), "|000000|%f 2023%");
}

std::string error(std::string_view source, const RenderOptions& options = {}) {
  try {
    return "no error: " + render(source, options);
  } catch (const Error& e) {
    return e.code() + " " + e.message();
  }
}

TEST(JinjaTemplate, SaysWhereItIsNoTemplate) {
  constexpr Pair kPairs[] = {
      {"{% if n %}", "template.syntax chat template:1:11: the template ends before endif; "},
      {"a\n {{ n", "template.syntax chat template:2:2: a tag without an end; "},
      {"{{ n ! }}", "template.syntax chat template:1:6: unexpected character '!'; "},
      {"{% endif %}", "unknown tag 'endif'"},
      {"{% include 'x' %}", "unknown tag 'include'"},
      {"{{ 'abc }}", "a string without an end"},
      {"{# x", "a comment without an end"},
      {"{% break %}", "'break' outside of a loop"},
      {"{% set none = 1 %}", "'none' cannot be set"},
      {"{% raw %}", "raw without endraw"},
      {"{{ 99999999999999999999 }}", "is no number of 64 bits"},
      {"{{ f(a=1, 2) }}", "an argument without a name after one with"},
  };
  for (const auto& [source, want] : kPairs)
    EXPECT_NE(error(source).find(want), std::string::npos) << source << " -> " << error(source);
}

TEST(JinjaTemplate, SaysWhatItCannotWorkWith) {
  constexpr Pair kPairs[] = {
      {"a\n{{ undef.x }}", "template.value chat template:2:9: 'undef' is undefined; "},
      {"{{ undef + 'a' }}", "'undef' is undefined"},
      {"{{ 1 + 'a' }}", "int and str have no '+'"},
      {"{{ 1 / 0 }}", "division by zero"},
      {"{{ l.append(1) }}", "templates cannot change a list or a dict"},
      {"{{ d.update({}) }}", "templates cannot change a list or a dict"},
      {"{{ n | nosuch }}", "there is no filter 'nosuch'"},
      {"{{ n is nosuch }}", "there is no test 'nosuch'"},
      {"{{ nosuch(1) }}", "'nosuch' is undefined"},
      {"{{ n() }}", "int cannot be called"},
      {"{{ l < s }}", "list and str have no order"},
      {"{{ 9223372036854775807 + 1 }}", "a number of more than 64 bits"},
      {"{% for x in n %}{% endfor %}", "int has no items to go through"},
      {"{% set n.x = 1 %}", "only namespaces have members"},
      {"{{ undef | tojson }}", "undefined cannot be written as JSON"},
      {"{{ l | slice(0) }}", "0 slices"},
      {"{{ l | groupby }}", "groupby takes an attribute's name"},
      {"{{ s | wordwrap(0) }}", "a width of 0"},
      {"{{ 'x' | fromjson }}", "json.format"},
      {"{{ cycler() }}", "cycler takes values"},
      {"{{ '%(a)s' % {} }}", "format has no argument for 'a'"},
      {"{{ '%(a' % {} }}", "a format's name has no end"},
      {"{{ '%(a)s' % 1 }}", "a format with names takes a dict"},
      {"{% for x in l %}{{ loop(l) }}{% endfor %}", "loop() runs loops with 'recursive' only"},
      {"{% for x in l recursive %}{{ loop() }}{% endfor %}", "loop() takes what to go through"},
      {"{{ s | truncate(2) }}", "a length of 2 with an end of 3"},
      {"{{ ['abc'] | urlencode }}", "urlencode takes pairs, got one of 3"},
      {"{{ raise_exception('roles must ' ~ 'alternate') }}",
       "template.raised chat template:1:19: roles must alternate; "},
      {"{{ ''.__class__ }}{{ s.__class__.__mro__ }}", "'__class__' is undefined"},
      {"{% for x in range(1000000) %}{% endfor %}", "a range of more than 100000 numbers"},
  };
  for (const auto& [source, want] : kPairs)
    EXPECT_NE(error(source).find(want), std::string::npos) << source << " -> " << error(source);
}

TEST(JinjaTemplate, StopsWhatTakesTooMuch) {
  RenderOptions options;
  options.most_steps = 100000;
  options.most_memory = 16 << 20;
  options.most_output = 1 << 16;
  const std::string loops = "{% for a in range(999) %}{% for b in range(999) %}";
  const std::pair<std::string, const char*> kPairs[] = {
      {loops + "{% endfor %}{% endfor %}", "more steps than is allowed"},
      {"{{ 'x' * 99999999 }}", "more memory than is allowed"},
      {"{% set ns = namespace(x='aaaaaaaaaa') %}{% for i in range(99) %}"
       "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
       "than is allowed"},
      {loops + "xxxxxxxxxxxxxxxxxxxxxxx{% endfor %}{% endfor %}",
       "the output is more than 64.0 KiB"},
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "macros call each other too deep"},
      {"{% for x in l recursive %}{{ loop(l) }}{% endfor %}", "macros call each other too deep"},
      {"{{ ('ab-c ' * 99999) | wordwrap(2) }}", "more steps"},
      {"{% set ns = namespace(x=1) %}{% for i in range(200) %}{% set ns.x = [ns.x] %}{% endfor %}"
       "{{ ns.x }}",
       "nested more than 100 levels"},
      {"{{ " + std::string(500, '(') + "1" + std::string(500, ')') + " }}",
       "deeper than 100 levels"},
      {"{{ 1" + std::string(500, '+') + "1 }}", "deeper than 100 levels"},
      {[] {
         std::string s = "{{ 1";
         for (int i = 0; i < 500; ++i) s += " + 1";
         return s + " }}";
       }(),
       "deeper than 100 levels"},
      {[] {
         std::string s;
         for (int i = 0; i < 500; ++i) s += "{% if n %}";
         return s;
       }(),
       "deeper than 100 levels"},
      {"{{ 'a' | replace('', 'x' * 10000) | replace('', 'y' * 10000) }}", "more memory"},
      {"{{ '%999999s' % 1 }}", "a width of more than 1000"},
  };
  for (const auto& [source, want] : kPairs)
    EXPECT_NE(error(source, options).find(want), std::string::npos)
        << source.substr(0, 60) << " -> " << error(source, options).substr(0, 200);
}

TEST(JinjaTemplate, TakesAJsonObject) {
  const JinjaTemplate t("{{ a }}");
  EXPECT_EQ(t.render(R"({"a": 12345678901234567, "b": 1})"), "12345678901234567");
  EXPECT_EQ(t.render(R"({"a": ")" + std::string(3 << 20, 'x') + "\"}").size(), 3u << 20);
  for (const char* bad : {"[1]", "{\"a\":", "", "{\"a\": 1} x"}) EXPECT_THROW(t.render(bad), Error);
}

}  // namespace
}  // namespace weft::text
