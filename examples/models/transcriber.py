"""From sound to text with Whisper: windows of 30 seconds, the rules of timestamps, a search for the likeliest tokens.

Radford et al. 2022, sections 2.3 and 4.5; https://github.com/openai/whisper (decoding.py, transcribe.py) is where the
rules for timestamps and the step from one window to the next are defined.
"""
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from weft import Tensor, TinyJit, Variable, dtypes

from models import audio, checkpoint
from models.whisper import FRAME, RATE, SECONDS_PER_POSITION, Whisper

NO_SPEECH, UNLIKELY = 0.6, -1.0  # a window is silence that says so with this probability and no text of this mean


@dataclass
class Tokens:
    """Which numbers mean what: generation_config.json; the defaults are those of the multilingual models."""
    eos_token_id: int = 50257
    decoder_start_token_id: int = 50258
    no_timestamps_token_id: int = 50363
    lang_to_id: dict[str, int] = field(default_factory=lambda: {"<|en|>": 50259})
    task_to_id: dict[str, int] = field(default_factory=lambda: {"transcribe": 50359, "translate": 50358})
    is_multilingual: bool = True
    suppress_tokens: list[int] = field(default_factory=list)
    begin_suppress_tokens: list[int] = field(default_factory=lambda: [220, 50257])
    max_initial_timestamp_index: int = 50

    @property
    def first_timestamp(self) -> int:
        return self.no_timestamps_token_id + 1

    @property
    def no_speech(self) -> int:
        return self.no_timestamps_token_id - 1

    @classmethod
    def from_folder(cls, folder: str) -> "Tokens":
        return checkpoint.configured(cls, checkpoint.read_json(folder, "generation_config.json", missing={}))


TINY_TOKENS = Tokens(120, 121, 127, {"<|en|>": 122, "<|de|>": 123}, {"transcribe": 125, "translate": 124},
                     begin_suppress_tokens=[32, 120])


@dataclass
class Segment:
    """What was said from one second to another."""
    start: float
    end: float
    text: str
    tokens: list[int]


@dataclass
class Beam:
    tokens: list[int]
    score: float = 0.0  # the sum of the logarithms of probabilities

    @property
    def mean(self) -> float:
        return self.score / (len(self.tokens) + 1)


class Transcriber:
    """Segments of text of any length of sound. One step of the decoder is compiled, for all positions: its number is
    a Variable. beams: how many texts are followed at a time; 1 takes the likeliest token every time."""

    def __init__(self, model: Whisper, tokens: Tokens, tokenizer: Any, beams: int = 1) -> None:
        self.model, self.tokens, self.tokenizer, self.beams = model, tokens, tokenizer, beams
        self.config = model.config
        self.language = ""
        self.filters = audio.mel_filters(self.config.num_mel_bins, FRAME // 2 + 1, RATE)
        self.cache = model.decoder.cache(beams)
        self.masks = {first: self._mask(first).realize() for first in (False, True)}
        self.listen = TinyJit(lambda samples: model.listen(samples, self.filters))
        self.step, self.reorder = TinyJit(self._step), TinyJit(self._reorder)

    # ---- on the device

    def _mask(self, first: bool) -> Tensor:
        """(vocabulary) bool: which tokens may be said, as the first or later."""
        t = self.tokens
        never = {*t.suppress_tokens, *range(t.eos_token_id + 1, t.first_timestamp)}
        never |= set(t.begin_suppress_tokens) if first else set()
        return Tensor([i not in never for i in range(self.config.vocab_size)])

    def _position(self, at: int):
        return Variable("position", 0, self.config.max_target_positions - 1).bind(at)

    def _step(self, said: Tensor, position, mask: Tensor, limits: Tensor, memory: list[list[Tensor]]) -> Any:
        """For tokens (rows, 1): scores and numbers (rows, beams + 1) of those that may follow, the likeliest first,
        and how likely it is that nobody speaks (rows)."""
        logits = self.model.decoder(said, position, self.cache, memory)
        scores, found = self._allowed(logits, mask, limits).topk(self.beams + 1)
        return scores, found, logits.softmax(-1)[:, self.tokens.no_speech]

    def _allowed(self, logits: Tensor, mask: Tensor, limits: Tensor) -> Tensor:
        """Logarithms of probabilities (rows, vocabulary) under the limits (rows, 3) of each row."""
        ids = Tensor.arange(self.config.vocab_size)
        least, low, high = (limits[:, i:i + 1] for i in range(3))
        stamp = ids >= self.tokens.first_timestamp
        seen = mask & (ids >= least) & (stamp.logical_not() | ((ids >= low) & (ids < high)))
        scores = seen.where(logits, -math.inf).log_softmax(-1)
        # All timestamps together are likelier than any word: it is one of them.
        stamps = stamp.where(scores, -math.inf).logsumexp(-1, keepdim=True)
        word = stamp.where(-math.inf, scores).max(-1, keepdim=True)
        return (stamp.logical_not() & (stamps > word)).where(-math.inf, scores).log_softmax(-1)

    def _reorder(self, rows: Tensor) -> list[Tensor]:
        """Every beam goes on from the row that it came from."""
        return [x.assign(x[rows].contiguous()) for pair in self.cache for x in pair]

    # ---- rules

    def limits(self, said: list[int], timestamps: bool) -> tuple[int, int, int]:
        """What may follow: no token below the first number, no timestamp below the second nor from the third on. A
        text begins with a timestamp; they come in pairs, the end of a segment and the start of the next, and never
        go back."""
        t, vocabulary = self.tokens, self.config.vocab_size
        if not timestamps:
            return 0, vocabulary, vocabulary
        if not said:
            return t.first_timestamp, t.first_timestamp, t.first_timestamp + t.max_initial_timestamp_index + 1
        stamps = [token for token in said if token >= t.first_timestamp]
        ended = said[-1] >= t.first_timestamp
        if ended and (len(said) < 2 or said[-2] >= t.first_timestamp):
            return 0, vocabulary, vocabulary
        low = stamps[-1] + (0 if ended else 1) if stamps else t.first_timestamp
        return t.eos_token_id if ended else 0, low, vocabulary

    # ---- one window

    def _run(self, said: list[int], at: int, mask: Tensor, limits: list[tuple[int, int, int]], memory: Any) -> Any:
        out = self.step(Tensor(said, dtype=dtypes.int32).unsqueeze(1), self._position(at), mask,
                        Tensor(limits, dtype=dtypes.int32), memory)
        return [x.tolist() for x in out]

    def detect_language(self, memory: Any) -> str:
        """The name of the likeliest one, as "en"."""
        names = {number: name for name, number in self.tokens.lang_to_id.items()}
        mask = Tensor([i in names for i in range(self.config.vocab_size)])
        free = [(0, self.config.vocab_size, self.config.vocab_size)] * self.beams
        _, found, _ = self._run([self.tokens.decoder_start_token_id] * self.beams, 0, mask, free, memory)
        return names[found[0][0]][2:-2]

    def prompt(self, task: str, timestamps: bool) -> list[int]:
        """What every text begins with."""
        t = self.tokens
        spoken = [t.lang_to_id[f"<|{self.language}|>"], t.task_to_id[task]] if t.is_multilingual else []
        return [t.decoder_start_token_id, *spoken, *([] if timestamps else [t.no_timestamps_token_id])]

    def decode(self, memory: Any, prompt: list[int], timestamps: bool) -> list[int]:
        """The tokens of the likeliest text that was found; none where nobody speaks."""
        for at, token in enumerate(prompt):
            limits = [self.limits([], timestamps)] * self.beams
            scores, found, silences = self._run([token] * self.beams, at, self.masks[True], limits, memory)
            silence = silences[0] if at == 0 else silence
        live, done = self._extended([Beam([])], scores, found)
        most = min(self.config.max_target_positions // 2, self.config.max_target_positions - len(prompt))
        while len(done) < self.beams and len(live[0][1].tokens) < most:
            live, more = self._next(live, len(prompt), memory, timestamps)
            done += more
        best = max(done or [beam for _, beam in live], key=lambda beam: beam.mean)
        return [] if silence > NO_SPEECH and best.mean < UNLIKELY else best.tokens

    def _next(self, live: list[tuple[int, Beam]], first: int, memory: Any, timestamps: bool) -> Any:
        """What _extended() gives for the beams and the rows that they came from; their texts begin at a position."""
        sources, beams = [row for row, _ in live], [beam for _, beam in live]
        if sources != list(range(self.beams)):
            self.reorder(Tensor(sources, dtype=dtypes.int32))
        at, limits = first + len(beams[0].tokens) - 1, [self.limits(beam.tokens, timestamps) for beam in beams]
        scores, found, _ = self._run([beam.tokens[-1] for beam in beams], at, self.masks[False], limits, memory)
        return self._extended(beams, scores, found)

    def _extended(self, beams: list[Beam], scores: list, found: list) -> tuple[list[tuple[int, Beam]], list[Beam]]:
        """The best beams with a token more, each with the row it came from; and those better than they that end."""
        every = sorted(((beam.score + score, row, token) for row, beam in enumerate(beams)
                        for score, token in zip(scores[row], found[row])), reverse=True)
        live: list[tuple[int, Beam]] = []
        done = []
        for score, row, token in every:
            if token == self.tokens.eos_token_id:
                done.append(Beam(beams[row].tokens, score))
            else:
                live.append((row, Beam([*beams[row].tokens, token], score)))
            if len(live) == self.beams:
                break
        return live, done

    # ---- all of it

    def transcribe(self, samples: Tensor, language: str = "", task: str = "transcribe",
                   timestamps: bool = True) -> Iterator[Segment]:
        """Segments of samples (n) at 16 kHz, one after the other as they are found. A language that is not given is
        that of the first window."""
        if language and f"<|{language}|>" not in self.tokens.lang_to_id:
            raise ValueError(f"language {language!r} is not known to the model: one of "
                             f"{', '.join(name[2:-2] for name in self.tokens.lang_to_id)}")
        self.language, total, at = language, int(samples.shape[0]), 0
        while at < total:
            window = samples[at:at + self.config.samples]
            memory = self.listen(window.pad(((0, self.config.samples - int(window.shape[0])),)).contiguous().realize())
            if self.tokens.is_multilingual and not self.language:
                self.language = self.detect_language(memory)
            said = self.decode(memory, self.prompt(task, timestamps), timestamps)
            segments, heard = self.segments(said, at / RATE, min(total, at + self.config.samples) / RATE)
            yield from segments
            at += heard

    def segments(self, said: list[int], start: float, end: float) -> tuple[list[Segment], int]:
        """The segments of a window's tokens, and how many of its samples they are of: the next window begins where
        the last whole segment ends, if another one had begun."""
        first, found, words, begun = self.tokens.first_timestamp, [], [], start
        for token in said:
            if token < first:
                words.append(token)
                continue
            now = start + (token - first) * SECONDS_PER_POSITION
            if words:
                found.append(self._segment(begun, min(now, end), words))
                words = []
            begun = now
        if len(said) > 1 and said[-1] >= first and said[-2] < first:
            return found, self.config.samples
        if found and begun > start:
            return found, round((begun - start) * RATE)
        return found + ([self._segment(begun, end, words)] if words else []), self.config.samples

    def _segment(self, start: float, end: float, words: list[int]) -> Segment:
        return Segment(round(start, 2), round(end, 2), self.tokenizer.decode(words).strip(), words)
