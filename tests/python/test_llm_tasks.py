"""One model for many threads and tasks of asyncio."""
import asyncio
import gc
import threading
import time

import pytest

from tiny_llm import tiny_llama
from weft._core import request_options
from weft.llm import Model, Options

ENDLESS = dict(ignore_end=True, seed=3)
TWELVE = dict(ENDLESS, max_tokens=12)
PROMPTS = [f"w{i} w5 w9" for i in range(7)]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tiny_llama(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def model(path):
    return Model(path, slots=3)


@pytest.fixture(scope="module")
def wanted(model):
    return [model.generate(p, **TWELVE) for p in PROMPTS]


def idle(model):
    model.embedding("w1 w2")  # a step, where one is needed to free what was cancelled
    return model.counters["running"] == model.counters["queued"] == 0


def test_tasks_share_a_model(model, wanted):
    async def all_of_them():
        return await asyncio.gather(*(model.agenerate(p, **TWELVE) for p in PROMPTS))
    steps = model.counters["steps"]
    assert asyncio.run(all_of_them()) == wanted
    assert model.counters["steps"] - steps < 7 * 12  # side by side
    assert idle(model)


def test_the_loop_runs_meanwhile(model, wanted):
    async def both():
        beats = 0

        async def beat():
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0)
        beating = asyncio.create_task(beat())
        text = "".join([t async for t in model.astream(PROMPTS[0], **TWELVE)])
        beating.cancel()
        return text, beats
    text, beats = asyncio.run(both())
    assert text == wanted[0] and beats > 10


def test_a_cancelled_task_frees_its_slot(path, wanted):
    model = Model(path, slots=1)

    async def stands_still():
        before = model.counters["generated_tokens"]
        await asyncio.sleep(0.02)
        assert model.counters["generated_tokens"] == before and model.counters["running"] == 0

    async def one_then_another():
        task = asyncio.create_task(model.agenerate("w4 w5", max_tokens=500, **ENDLESS))
        while model.counters["generated_tokens"] < 5:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await stands_still()
        text = await model.agenerate(PROMPTS[1], **TWELVE)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(model.agenerate("w4 w5", max_tokens=500, **ENDLESS), 0.002)
        await stands_still()
        return text
    assert asyncio.run(one_then_another()) == wanted[1]


def test_leaving_a_stream_cancels_it(model):
    async def first():
        async for text in model.astream("w4 w5", max_tokens=400, **ENDLESS):
            return text
    before = model.counters["generated_tokens"]
    assert asyncio.run(first()).startswith(" w")  # behind the prompt's last word
    stream = model.stream("w4 w5", max_tokens=400, **ENDLESS)
    next(stream)
    del stream
    never_asked = model.stream("w4 w5", max_tokens=400, **ENDLESS)
    del never_asked
    gc.collect()
    for _ in range(200):  # the thread for tasks ends by itself
        if not any(t.name == "weft.llm" for t in threading.enumerate()):
            break
        time.sleep(0.01)
    assert idle(model) and model.counters["generated_tokens"] - before < 400
    assert not any(t.name == "weft.llm" for t in threading.enumerate())


def test_threads_share_a_model(model, wanted):
    found = {}

    def ask(i):
        found[i] = model.generate(PROMPTS[i], **TWELVE)

    async def tasks():
        return await asyncio.gather(*(model.agenerate(p, **TWELVE) for p in PROMPTS))
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(PROMPTS))]
    for t in threads:
        t.start()
    assert asyncio.run(tasks()) == wanted
    vector = model.embedding("w1 w2")
    for t in threads:
        t.join()
    assert [found[i] for i in range(len(PROMPTS))] == wanted
    assert model.embedding("w1 w2") == vector


def test_streams_of_several_threads_go_on_together(model):
    """None waits for another's end."""
    arrivals, together = [], threading.Barrier(3)

    def ask(i):
        stream = model.stream(PROMPTS[i], max_tokens=300, **ENDLESS)
        together.wait()
        for _ in stream:
            arrivals.append(i)
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    middle = arrivals[len(arrivals) // 3:2 * len(arrivals) // 3]
    assert set(middle) == {0, 1, 2}


def test_errors(model):
    async def wrong(prompt, **options):
        return await model.agenerate(prompt, **options)
    for ask in (lambda *a, **k: asyncio.run(wrong(*a, **k)), model.generate):
        with pytest.raises(ValueError, match="the prompt has no tokens"):
            ask([])
        with pytest.raises(ValueError, match="top_p"):
            ask("w1", top_p=2)
        with pytest.raises(TypeError, match="there is no option 'tempratur'; there are: max_tokens min_tokens"):
            ask("w1", tempratur=1)
        with pytest.raises(TypeError, match="seed cannot be 'x'"):
            ask("w1", seed="x")
        with pytest.raises(RuntimeError, match="expected '::='"):
            ask("w1", grammar="root := 1")
    assert idle(model)


def test_options(model):
    for held in (dict(grammar='root ::= "w7"'), dict(json_schema={"const": 7}), dict(json_schema='{"const": 7}')):
        with pytest.raises(ValueError, match="no token of the vocabulary is a letter"):  # words are not spelt
            model.generate("w1", **held)
    assert model.generate("w1", logit_bias={8: 100.0}, max_tokens=2, temperature=0) == " w8 w8"
    assert model.generate("w1", logit_bias={8: 100.0}, max_tokens=2, temperature=0, continues=False) == "w8 w8"
    bias = {8: 100.0, 9: 50.0}
    stopped = model.generate("w1", logit_bias=bias, max_tokens=4, temperature=0, stop_tokens=[8], min_tokens=2)
    assert stopped == " w9 w9"  # the one that ends it comes behind the least length
    with pytest.raises(ValueError, match="min_tokens is 3"):
        model.generate("w1", min_tokens=3, max_tokens=2)
    with pytest.raises(ValueError, match="no token of the vocabulary is a letter"):
        model.generate("w1", pattern="w[0-9]+")
    with pytest.raises(ValueError, match="no token of the vocabulary is a letter"):
        model.generate("w1", choices=["w3", "w4"])
    assert model.tokenizer.decode(model.encode("w1 w2")) == model.decode([1, 2]) == "w1 w2"


def test_options_are_those_of_all_faces(model):
    """The list that the command has, whose names and defaults are the library's."""
    known = request_options()
    assert set(Options.__annotations__) == set(known)
    assert (known["temperature"], known["top_k"], known["continues"], known["choices"]) == (pytest.approx(0.8), 40, True, None)
    assert model.generate("w1", choices=None, pattern=None, max_tokens=2, logit_bias={70: 3.0}, reuse_prefix=False)
    for wrong, error, text in [(dict(heat=1), TypeError, "there is no option 'heat'; there are: max_tokens"),
                               (dict(seed="x"), TypeError, "seed cannot be 'x'"),
                               (dict(top_p=2.0), ValueError, "top_p is 2; it has to be 0 to 1"),
                               (dict(choices=[]), RuntimeError, "there are no texts to choose from"),
                               (dict(choices=["a"], pattern="a"), ValueError, "pattern and choices are given")]:
        with pytest.raises(error, match=text):
            model.generate("w1", **wrong)
