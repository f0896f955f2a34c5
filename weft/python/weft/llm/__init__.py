"""Language models: GGUF files and Hugging Face folders.

    from weft.llm import Model

    model = Model("model-Q4_K_M.gguf")
    print(model.generate("Once upon a time", max_tokens=100))
    for text in model.stream("Once upon a time", temperature=0.7, seed=1):
        print(text, end="", flush=True)

In a task of asyncio: async for text in model.astream(...), await model.agenerate(...).
"""
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias, TypedDict, Unpack

from weft._core import LanguageModel, Tensor, Tokenizer
from weft._core import convert as _convert
from weft._core import merge_lora as _merge_lora
from weft._core import quantize as _quantize
from weft.llm.requests import Requests, Stream
from weft.llm.train import Finetuner, Trainer, export_checkpoint, finetune, train

__all__ = ["Finetuner", "Model", "Options", "Trainer", "convert", "export_checkpoint", "finetune", "merge", "quantize", "train"]

Adapter: TypeAlias = str | tuple[str, float]


def quantize(path: str, out: str, type: str = "Q4_K_M", *, requantize: bool = False) -> None:
    """Writes a GGUF file with fewer bits, of a GGUF file or a folder of Hugging Face's: matrices in one of llama.cpp's
    mixes of formats. requantize=True takes what is packed already, too, which loses more."""
    _quantize(str(path), str(out), type, requantize)


def convert(path: str, out: str, type: str = "") -> None:
    """A folder of Hugging Face's (config.json, safetensors, tokenizer.json) to a GGUF file, or back. type: what
    matrices become, "F16", "BF16", "F32", and of GGUF files any mix of quantize(); "": they stay as they are, and what
    is packed becomes f16 in a folder."""
    _convert(str(path), str(out), type)


def merge(path: str, lora: Adapter | Sequence[Adapter], out: str, type: str = "") -> None:
    """Writes a GGUF file of a model with one or several adapters in its weights: files, or pairs of a file and how much counts.
    type: what matrices become, as of quantize(); "": each keeps its format."""
    _merge_lora(str(path), _adapters(lora), str(out), type)


def _adapters(lora: Adapter | Sequence[Adapter]) -> list[tuple[str, float]]:
    given: Sequence[Any] = lora
    if isinstance(lora, (str, os.PathLike)) or (isinstance(lora, tuple) and len(lora) == 2 and isinstance(lora[1], (int, float))):
        given = [lora]
    return [(str(one[0]), float(one[1])) if isinstance(one, tuple) else (str(one), 1.0) for one in given]


class Options(TypedDict, total=False):
    """How an answer goes on; what is not given has the value in brackets."""
    max_tokens: int  # [-1: as far as the context reaches]
    stop: Sequence[str]  # texts that end it and are not part of it [()]
    stop_tokens: Sequence[int]  # that end it, too [()]
    continues: bool  # the prompt's text: its first word keeps its space [True]
    min_tokens: int  # before that no token is drawn that would end it [0]
    ignore_end: bool  # goes on behind the model's end of text [False]
    reuse_prefix: bool  # begins behind what an earlier text left of the prompt [True]
    json_schema: str | dict[str, Any]  # that it follows
    grammar: str  # in GBNF, that it follows
    pattern: str  # a regular expression that the whole of it matches
    choices: Sequence[str]  # of which it is one
    temperature: float  # 0: the likeliest tokens [0.8]
    top_k: int  # of so many likeliest tokens; 0: all [40]
    top_p: float  # of the likeliest whose probabilities sum to this [0.95]
    min_p: float  # of those not below this share of the likeliest one's [0.05]
    typical_p: float  # locally typical sampling [1: none]
    repetition_penalty: float  # [1: none]
    presence_penalty: float  # [0]
    frequency_penalty: float  # [0]
    penalised_tokens: int  # looked back for the penalties; -1: all [64]
    logit_bias: dict[int, float]  # by tokens
    mirostat_tau: float  # above 0: Mirostat 2 in place of top_k to min_p [0]
    mirostat_eta: float  # [0.1]
    seed: int  # [0]


Prompt: TypeAlias = str | Sequence[int]


class Model:
    """A model and its cache of keys and values. What is asked while a stream is open runs beside it, in as many slots
    as there are; a prompt that begins as an earlier text did begins behind that.

    Threads and tasks of asyncio may share it: a step computes for all of them.

    context: tokens of a text, at most the model's (0: that). cache: numbers of keys and values, "f16", "f32", or "q8"
    (8 bits and a scale for 32). factors: what the factors of products with weights are rounded to, "f32" (not at all),
    "bf16" or "q8" (8 bits); "auto": to 8 bits where the machine multiplies bytes. draft: "lookup", or the path of a
    smaller model with the same tokens: up to draft_tokens tokens are guessed ahead, from the text so far or by that
    model, and checked in one step; answers stay the same. lora: adapters beside the weights, one or several: files (GGUF, or
    PEFT's folders) or pairs of a file and how much of it counts.
    """

    def __init__(self, path: str, *, context: int = 4096, slots: int = 1, cache: str = "f16", factors: str = "auto",
                 draft: str | None = None, draft_tokens: int = 5, lora: Adapter | Sequence[Adapter] = ()):
        model = "" if draft is None or draft == "lookup" else str(draft)
        self._model = LanguageModel(str(path), context, slots, cache, factors, model, draft_tokens if draft else 0,
                                    _adapters(lora))
        self._requests = Requests(self._model)

    def stream(self, prompt: Prompt, **options: Unpack[Options]) -> Stream:
        """The text that follows, in pieces as it comes. Closing the iterator, or dropping it, cancels what is left."""
        return Stream(self._requests, self._ids(prompt), dict(options))

    def generate(self, prompt: Prompt, **options: Unpack[Options]) -> str:
        """The text that follows."""
        return "".join(self.stream(prompt, **options))

    async def astream(self, prompt: Prompt, **options: Unpack[Options]) -> AsyncIterator[str]:
        """stream() for tasks: async for text in model.astream("Once"). Cancelling the task cancels the request, whose
        slot is free before the next step."""
        async with aclosing(self._requests.for_task(self._ids(prompt), dict(options))) as pieces:
            async for text in pieces:
                yield text

    async def agenerate(self, prompt: Prompt, **options: Unpack[Options]) -> str:
        """generate() for tasks: await asyncio.gather(*(model.agenerate(p) for p in prompts))."""
        return "".join([text async for text in self.astream(prompt, **options)])

    def _ids(self, text: Prompt) -> list[int]:
        return self.encode(text) if isinstance(text, str) else list(text)

    def logits(self, tokens: Prompt) -> Tensor:
        """(tokens, vocabulary) f32: of each token's successor."""
        with self._requests.pause():
            return self._model.logits(self._ids(tokens))

    def embedding(self, text: Prompt) -> list[float]:
        """The mean of the last layer's hidden states, of unit length."""
        with self._requests.pause():
            return self._model.embedding(self._ids(text))

    def encode(self, text: str) -> list[int]:
        """The ids of a text, as the model wants them."""
        return self.tokenizer.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids."""
        return self.tokenizer.decode(ids)

    @property
    def tokenizer(self) -> Tokenizer:
        """Of a chat: model.generate(model.tokenizer.apply_chat_template([{"role": "user", "content": "Hello"}]))."""
        return self._model.tokenizer

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def context(self) -> int:
        """Tokens of a text, at most."""
        return self._model.context

    @property
    def counters(self) -> dict[str, float]:
        """Requests that run and wait, tokens that were read, reused and generated, bytes."""
        with self._requests.turn():
            return dict(self._model.counters)
