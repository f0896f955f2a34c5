"""The server of language models, asked by OpenAI's own client. It answers from a generator that does
what its prompts say (tests/support/llm/fake_generator.h)."""
import concurrent.futures
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


@pytest.fixture(scope="module")
def address():
    process = subprocess.Popen([fake_server(), "0", "sesame"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    yield process.stdout.readline().strip()
    process.stdin.close()
    assert process.wait(timeout=30) == 0


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


def test_completions(client):
    answer = client.completions.create(model="fake", prompt=["SAY x", "SAY y"], n=2, echo=True)
    assert [c.text for c in answer.choices] == ["SAY xx"] * 2 + ["SAY yy"] * 2
    text = "".join(c.choices[0].text for c in client.completions.create(model="fake", prompt="SAY abc", stream=True))
    assert text == "abc"
    logprobs = client.completions.create(model="fake", prompt="SAY ab", logprobs=1).choices[0].logprobs
    assert logprobs.tokens == ["a", "b"] and logprobs.token_logprobs == [-0.25] * 2


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
