"""Language models: GGUF files and Hugging Face folders.

    from weft.llm import Model

    model = Model("model-Q4_K_M.gguf")
    print(model.generate("Once upon a time", max_tokens=100))
    for text in model.stream("Once upon a time", temperature=0.7, seed=1):
        print(text, end="", flush=True)
"""
from collections.abc import Iterator, Sequence

from weft._core import LanguageModel, Tensor
from weft._core import convert as _convert
from weft._core import merge_lora as _merge_lora
from weft._core import quantize as _quantize
from weft.llm.train import Trainer, export_checkpoint, train

__all__ = ["Model", "Trainer", "convert", "export_checkpoint", "merge", "quantize", "train"]

Adapter = str | tuple[str, float]


def quantize(path: str, out: str, type: str = "Q4_K_M", *, requantize: bool = False) -> None:
    """Writes a GGUF file with fewer bits, of a GGUF file or a folder of Hugging Face's: matrices in one of llama.cpp's
    mixes of formats. requantize=True takes what is packed already, too, which loses more."""
    _quantize(str(path), str(out), type, requantize)


def convert(path: str, out: str, type: str = "") -> None:
    """A folder of Hugging Face's (config.json, safetensors, tokenizer.json) to a GGUF file, or back. type: what
    matrices become, "F16", "BF16", "F32", and of GGUF files any mix of quantize(); "": they stay as they are, and what
    is packed becomes f16 in a folder."""
    _convert(str(path), str(out), type)


def merge(path: str, lora: Sequence[Adapter], out: str, type: str = "") -> None:
    """Writes a GGUF file of a model with adapters in its weights: files, or pairs of a file and how much of it counts.
    type: what matrices become, as of quantize(); "": each keeps its format."""
    _merge_lora(str(path), _adapters(lora), str(out), type)


def _adapters(lora: Sequence[Adapter]) -> list[tuple[str, float]]:
    return [(str(one[0]), float(one[1])) if isinstance(one, tuple) else (str(one), 1.0) for one in lora]


class Model:
    """A model and its cache of keys and values. What is asked while a stream is open runs beside it, in as many slots
    as there are; a prompt that begins as an earlier text did begins behind that. One thread at a time.

    context: tokens of a text, at most the model's (0: that). cache: numbers of keys and values, "f16", "f32", or "q8"
    (8 bits and a scale for 32). draft: "lookup", or the path of a smaller model with the same tokens: up to draft_tokens
    tokens are guessed ahead, from the text so far or by that model, and checked in one step; answers stay the same.
    lora: adapters beside the weights, files (GGUF, or PEFT's folders) or pairs of a file and how much of it counts.
    """

    def __init__(self, path: str, *, context: int = 4096, slots: int = 1, cache: str = "f16", draft: str | None = None,
                 draft_tokens: int = 7, lora: Sequence[Adapter] = ()):
        model = "" if draft is None or draft == "lookup" else str(draft)
        self._model = LanguageModel(str(path), context, slots, cache, model, draft_tokens if draft else 0, _adapters(lora))
        self._open: dict[int, list[tuple[str, str, str]]] = {}  # what running requests have got and nobody has taken

    def stream(self, prompt: str | Sequence[int], *, max_tokens: int = -1, temperature: float = 0.8, top_k: int = 40,
               top_p: float = 0.95, min_p: float = 0.05, seed: int = 0, stop: Sequence[str] = (),
               ignore_end: bool = False) -> Iterator[str]:
        """The text that follows, in pieces as it comes. Closing the iterator cancels what is left. temperature=0 takes
        the likeliest tokens; max_tokens=-1 goes on as far as the context reaches."""
        ids = self.encode(prompt) if isinstance(prompt, str) else list(prompt)
        request = self._model.submit(ids, max_tokens, list(stop), ignore_end, temperature, top_k, top_p, min_p, seed)
        self._open[request] = []
        return self._pieces(request)

    def _pieces(self, request: int) -> Iterator[str]:
        finished = False
        try:
            while not finished:
                while not self._open[request]:
                    for which, _, text, finish, error in self._model.step():
                        if which in self._open:
                            self._open[which].append((text, finish, error))
                text, finish, error = self._open[request].pop(0)
                finished = finish != ""
                if error:
                    raise RuntimeError(error)
                if text:
                    yield text
        finally:
            del self._open[request]
            if not finished:
                self._model.cancel(request)

    def generate(self, prompt: str | Sequence[int], **options) -> str:
        """The text that follows, with the options of stream()."""
        return "".join(self.stream(prompt, **options))

    def logits(self, tokens: str | Sequence[int]) -> Tensor:
        """(tokens, vocabulary) f32: of each token's successor."""
        return self._model.logits(self.encode(tokens) if isinstance(tokens, str) else list(tokens))

    def embedding(self, text: str | Sequence[int]) -> list[float]:
        """The mean of the last layer's hidden states, of unit length."""
        return self._model.embedding(self.encode(text) if isinstance(text, str) else list(text))

    def encode(self, text: str) -> list[int]:
        """The ids of a text, as the model wants them."""
        return self._model.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids."""
        return self._model.decode(list(ids))

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
        return dict(self._model.counters)
