"""The server of language models, asked by OpenAI's own client. It answers from a generator that does
what its prompts say (tests/support/llm/fake_generator.h)."""
import concurrent.futures
import contextlib
import pathlib
import subprocess
import time

import pytest

openai = pytest.importorskip("openai")
ROOT = pathlib.Path(__file__).resolve().parents[2]


def fake_server():
    found = list(ROOT.glob("build/*/fake_server"))
    if not found:
        pytest.skip("the target fake_server is not built")
    return max(found, key=lambda path: path.stat().st_mtime)


@contextlib.contextmanager
def served(*arguments):
    process = subprocess.Popen([fake_server(), "0", "sesame", *arguments], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    yield process.stdout.readline().strip()
    process.stdin.close()
    assert process.wait(timeout=30) == 0


@pytest.fixture(scope="module")
def address():
    with served() as one:
        yield one


@pytest.fixture()
def client(address):
    with openai.OpenAI(base_url=address + "/v1", api_key="sesame", max_retries=0) as one:
        yield one


def ask(client, text, **more):
    return client.chat.completions.create(model="fake", messages=[{"role": "user", "content": text}], **more)


def test_models(client):
    assert [m.id for m in client.models.list()] == ["fake"]
    assert client.models.retrieve("fake").owned_by == "weft"
    with pytest.raises(openai.NotFoundError) as wrong:
        client.models.retrieve("gpt-9")
    assert wrong.value.code == "model_not_found" and wrong.value.param == "model"


def test_chat(client):
    answer = ask(client, "SAY Hé 😀", temperature=0.5, top_p=0.9, seed=3, presence_penalty=0.1,
                 frequency_penalty=0.1, logit_bias={"65": -100}, user="me",
                 extra_body={"top_k": 40, "min_p": 0.05, "repetition_penalty": 1.1})
    assert answer.choices[0].message.content == "Hé 😀"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.completion_tokens == len("Hé 😀".encode())
    assert answer.id.startswith("chatcmpl-") and answer._request_id.startswith("req-")
    assert [c.message.content for c in ask(client, "SAY x", n=3).choices] == ["x"] * 3
    assert ask(client, "SAY one two", stop=["tw"]).choices[0].message.content == "one "
    cut = ask(client, "SAY one two", max_completion_tokens=2).choices[0]
    assert (cut.message.content, cut.finish_reason) == ("on", "length")


def test_stream(client):
    text, usage, finish = "", None, None
    for chunk in ask(client, "SAY Hé 😀", stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
    assert (text, finish, usage.completion_tokens) == ("Hé 😀", "stop", 8)
    with client.chat.completions.stream(model="fake", messages=[{"role": "user", "content": "SAY abc"}]) as s:
        assert s.get_final_completion().choices[0].message.content == "abc"


def test_logprobs(client):
    whole = ask(client, "SAY ab", logprobs=True, top_logprobs=3).choices[0].logprobs.content
    assert [(t.token, t.bytes, len(t.top_logprobs)) for t in whole] == [("a", [97], 3), ("b", [98], 3)]
    chunks = [c.choices[0].logprobs for c in ask(client, "SAY ab", logprobs=True, stream=True)]
    assert [t.token for part in chunks if part for t in part.content] == ["a", "b"]


TOOLS = [{"type": "function", "function": {"name": "weather", "description": "of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}}}}]
CALL = r'SAY <tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def test_tools(client):
    message = ask(client, CALL, tools=TOOLS).choices[0].message
    call = message.tool_calls[0]
    assert (message.content, call.type, call.function.arguments) == (None, "function", '{"city":"Oslo"}')
    answer = client.chat.completions.create(model="fake", tools=TOOLS, messages=[
        {"role": "user", "content": "weather?"}, message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "SAY rain"}])
    assert answer.choices[0].message.content == "rain"
    bare = ask(client, 'SAY {"name": "weather", "parameters": {"city": "Bonn"}}', tools=TOOLS).choices[0]
    assert (bare.finish_reason, bare.message.tool_calls[0].function.arguments) == ("tool_calls", '{"city":"Bonn"}')
    with client.chat.completions.stream(model="fake", tools=TOOLS, messages=[{"role": "user", "content": CALL}]) as s:
        final = s.get_final_completion().choices[0]
    assert final.finish_reason == "tool_calls"
    assert final.message.tool_calls[0].function.name == "weather"
    assert ask(client, CALL, tools=TOOLS, tool_choice="none").choices[0].message.tool_calls is None
    forced = ask(client, r'SAY {"name": "weather", "arguments": {"city": "Rome"}}', tools=TOOLS,
                 tool_choice={"type": "function", "function": {"name": "weather"}})
    assert forced.choices[0].message.tool_calls[0].function.arguments == '{"city":"Rome"}'


def test_calls_side_by_side(client):
    two = CALL + CALL[4:].replace("Oslo", "Rome")
    whole = ask(client, two, tools=TOOLS, parallel_tool_calls=True).choices[0]
    assert [c.function.arguments for c in whole.message.tool_calls] == ['{"city":"Oslo"}', '{"city":"Rome"}']
    found = {}
    for chunk in ask(client, two, tools=TOOLS, stream=True):
        for delta in chunk.choices[0].delta.tool_calls or []:
            found.setdefault(delta.index, ["", "", delta.id])
            found[delta.index][0] += delta.function.name or ""
            found[delta.index][1] += delta.function.arguments or ""
    assert [found[i][:2] for i in (0, 1)] == [["weather", '{"city":"Oslo"}'], ["weather", '{"city":"Rome"}']]
    assert found[0][2] != found[1][2]
    required = ask(client, r'SAY {"name": "weather", "arguments": {}}', tools=TOOLS, tool_choice="required").choices[0]
    assert required.message.tool_calls[0].function.name == "weather"


def test_parsed_answers(client):
    import pydantic

    class Point(pydantic.BaseModel):
        x: int
        y: int
    answer = client.chat.completions.parse(model="fake", response_format=Point,
                                           messages=[{"role": "user", "content": 'SAY {"x": 1, "y": 2}'}])
    assert answer.choices[0].message.parsed == Point(x=1, y=2)
    answer = client.responses.parse(model="fake", text_format=Point, input='SAY {"x": 3, "y": 4}')
    assert answer.output_parsed == Point(x=3, y=4)


def test_responses(client):
    answer = client.responses.create(model="fake", input="SAY Hé 😀", instructions="Be brief.", temperature=0.5)
    assert (answer.output_text, answer.status, answer.error) == ("Hé 😀", "completed", None)
    assert (answer.instructions, answer.temperature, answer.usage.output_tokens) == ("Be brief.", 0.5, 8)
    cut = client.responses.create(model="fake", input="SAY abc", max_output_tokens=2)
    assert (cut.output_text, cut.status, cut.incomplete_details.reason) == ("ab", "incomplete", "max_output_tokens")
    with client.responses.stream(model="fake", input="SAY abc") as s:
        events = list(s)
        final = s.get_final_response()
    assert final.output_text == "abc" and events[-1].type == "response.completed"
    assert [e.sequence_number for e in events if hasattr(e, "sequence_number")][:3] == [0, 1, 2]
    tool = {"type": "function", **TOOLS[0]["function"]}
    called = client.responses.create(model="fake", input=CALL, tools=[tool])
    call = next(item for item in called.output if item.type == "function_call")
    assert (call.name, call.arguments) == ("weather", '{"city":"Oslo"}')
    again = client.responses.create(model="fake", tools=[tool], input=[
        {"role": "user", "content": "weather?"}, *called.output,
        {"type": "function_call_output", "call_id": call.call_id, "output": "SAY rain"}])
    assert again.output_text == "rain"
    with client.responses.stream(model="fake", input=CALL, tools=[tool]) as s:
        assert s.get_final_response().output[-1].arguments == '{"city":"Oslo"}'
    with pytest.raises(openai.BadRequestError, match="nothing is kept between requests"):
        client.responses.create(model="fake", input="x", previous_response_id="resp_1")
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="gpt-9", input="x")


def test_async_client(address):
    import asyncio

    async def both():
        async with openai.AsyncOpenAI(base_url=address + "/v1", api_key="sesame") as one:
            async def ask(i):
                stream = await one.chat.completions.create(model="fake", stream=True,
                                                           messages=[{"role": "user", "content": f"SAY {i}"}])
                return "".join([c.choices[0].delta.content or "" async for c in stream])
            return await asyncio.gather(*(ask(i) for i in range(20)))
    assert asyncio.run(both()) == [str(i) for i in range(20)]


def test_a_full_server_limits_the_rate():
    with served("4") as address, openai.OpenAI(base_url=address + "/v1", api_key="sesame", max_retries=0) as client:
        with pytest.raises(openai.RateLimitError) as full:
            ask(client, "SAY x", n=5)
        assert full.value.code == "overloaded" and full.value.response.headers["retry-after"] == "1"
        assert len(ask(client, "SAY x", n=4).choices) == 4


def test_completions(client):
    answer = client.completions.create(model="fake", prompt=["SAY x", "SAY y"], n=2, echo=True)
    assert [c.text for c in answer.choices] == ["SAY xx"] * 2 + ["SAY yy"] * 2
    text = "".join(c.choices[0].text for c in client.completions.create(model="fake", prompt="SAY abc", stream=True))
    assert text == "abc"
    logprobs = client.completions.create(model="fake", prompt="SAY ab", logprobs=1).choices[0].logprobs
    assert logprobs.tokens == ["a", "b"] and logprobs.token_logprobs == [-0.25] * 2
    tokens = client.completions.create(model="fake", prompt=[*b"SAY x"], best_of=1, logit_bias={"65": 1}, seed=1)
    assert tokens.choices[0].text == "x"
    assert len(client.completions.create(model="fake", prompt="SAY x", best_of=3, n=2).choices) == 2
    with pytest.raises(openai.BadRequestError, match="behind a prompt") as wrong:
        client.completions.create(model="fake", prompt="SAY x", suffix="y")
    assert wrong.value.code == "unsupported_parameter"


def test_embeddings(client):
    # The client asks for base64 unless told otherwise, and decodes it.
    packed = client.embeddings.create(model="fake", input=["a", "bc"])
    plain = client.embeddings.create(model="fake", input=["a", "bc"], encoding_format="float")
    for one, other in zip(packed.data, plain.data):
        assert one.embedding == pytest.approx(other.embedding, abs=1e-7)
    assert packed.usage.prompt_tokens == 3
    assert len(client.embeddings.create(model="fake", input=[97, 98], dimensions=4).data[0].embedding) == 4


@pytest.mark.parametrize("more, param, part", [
    ({"temperature": 3}, "temperature", "temperature is 3; it has to be a number from 0 to 2"),
    ({"n": 1000}, "n", "n is 1000; it has to be an integer from 1 to 64"),
    ({"top_logprobs": 2}, "top_logprobs", "logprobs has to be true"),
    ({"extra_body": {"temprature": 1}}, "temprature", "did you mean temperature?"),
    ({"extra_body": {"functions": []}}, "functions", "use tools"),
])
def test_refusals(client, more, param, part):
    with pytest.raises(openai.BadRequestError) as wrong:
        ask(client, "SAY x", **more)
    assert wrong.value.param == param and part in wrong.value.message
    assert wrong.value.type == "invalid_request_error"


def test_errors(client, address):
    with pytest.raises(openai.BadRequestError) as wrong:
        ask(client, "x" * 200000)
    assert wrong.value.code == "context_length_exceeded"
    with pytest.raises(openai.InternalServerError, match="the fake broke"):
        ask(client, "BREAK")
    with pytest.raises(openai.APIError, match="the fake broke"):
        list(ask(client, "BREAK", stream=True))
    with openai.OpenAI(base_url=address + "/v1", api_key="wrong", max_retries=0) as other:
        with pytest.raises(openai.AuthenticationError) as refused:
            ask(other, "SAY x")
    assert refused.value.code == "invalid_api_key"


def metric(address, name):
    import urllib.request
    request = urllib.request.Request(address + "/metrics", headers={"Authorization": "Bearer sesame"})
    text = urllib.request.urlopen(request, timeout=10).read().decode()
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))


def test_metrics_are_prometheus_text(client, address):
    parser = pytest.importorskip("prometheus_client.parser")
    import urllib.request
    request = urllib.request.Request(address + "/metrics", headers={"Authorization": "Bearer sesame"})
    text = urllib.request.urlopen(request, timeout=10).read().decode()
    names = {family.name for family in parser.text_string_to_metric_families(text)}
    assert {"weft_requests", "weft_first_token_seconds", "weft_generator_running"} <= names


def test_cancelled_streams_free_their_places(client, address):
    for _ in range(20):
        stream = ask(client, "LONG 100000", stream=True)
        assert next(iter(stream)).choices[0].delta.role == "assistant"
        stream.close()
    deadline = time.monotonic() + 10
    while metric(address, "weft_generator_running") + metric(address, "weft_generator_queued") > 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_64_streams_at_once(client):
    def one(i):
        return "".join(c.choices[0].delta.content or "" for c in ask(client, f"SAY stream {i}", stream=True))
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        assert list(pool.map(one, range(64))) == [f"stream {i}" for i in range(64)]


def test_a_prompts_own_probabilities(client):
    """As lm-evaluation-harness asks for them."""
    answer = client.completions.create(model="fake", prompt=[83, 65, 89, 32, 122], echo=True, logprobs=1, max_tokens=1,
                                       extra_body={"stop_token_ids": [5], "min_tokens": 1})
    choice = answer.choices[0]
    assert choice.text == "SAY zz"
    assert choice.logprobs.token_logprobs == [None] + [-0.5] * 4 + [-0.25]
    assert choice.logprobs.top_logprobs[0] is None
    for token, top in zip(choice.logprobs.tokens[1:], choice.logprobs.top_logprobs[1:]):
        assert token == max(top, key=top.get)
    assert [choice.text[at] for at in choice.logprobs.text_offset] == choice.logprobs.tokens
    assert answer.usage.prompt_tokens_details.cached_tokens == 3


def test_names_of_vllm(client):
    for name, value in (("guided_choice", ["x", "y"]), ("guided_regex", "[xy]"), ("guided_json", {"type": "string"}),
                        ("grammar", 'root ::= "x"'), ("structured_outputs", {"regex": "x"})):
        assert ask(client, "SAY x", extra_body={name: value}).choices[0].message.content == "x"
