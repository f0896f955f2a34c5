"""Texts to vectors whose products say how alike they are, with BERT, MiniLM and their kin.

    python examples/embed.py --model all-MiniLM-L6-v2 "a cat sits on a mat" "a kitten rests" "prices rise"
"""
import json
from typing import Any

from models import bert, checkpoint, program
from weft import Tensor, TinyJit, dtypes

CONFIGS = {"tiny": bert.TINY, "minilm": bert.MINILM, "bert-base": bert.BertConfig()}
STEP = 16  # lengths are multiples of it: few are captured, and little is computed in vain


class Embedder:
    """Vectors (texts, width) of lists of tokens, in batches of texts that are about as long."""

    def __init__(self, model: bert.Bert, pooling: bert.Pooling, longest: int, batch: int) -> None:
        self.model, self.pooling, self.longest, self.batch = model, pooling, longest, batch
        self.captured: dict[tuple[int, int], TinyJit] = {}

    def _embed(self, ids: Tensor, lengths: Tensor) -> Tensor:
        counts = Tensor.arange(ids.shape[1]) < lengths.unsqueeze(1)
        return self.pooling(self.model(ids, counts), counts)

    def _run(self, rows: list[list[int]]) -> list[list[float]]:
        length = min(-(-max(map(len, rows)) // STEP) * STEP, self.longest)
        run = self.captured.setdefault((len(rows), length), TinyJit(self._embed))
        padded = [row + [0] * (length - len(row)) for row in rows]
        return run(Tensor(padded, dtype=dtypes.int32), Tensor([len(row) for row in rows], dtype=dtypes.int32)).tolist()

    def __call__(self, texts: list[list[int]]) -> list[list[float]]:
        """Of a text that is too long the beginning and its last token count."""
        rows = [[*ids[:self.longest - 1], ids[-1]] if len(ids) > self.longest else ids for ids in texts]
        found: dict[int, list[float]] = {}
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        for start in range(0, len(order), self.batch):
            places = order[start:start + self.batch]
            found.update(zip(places, self._run([rows[i] for i in places])))
        return [found[i] for i in range(len(rows))]


def read_model(args: Any) -> tuple[Embedder, Any]:
    """The model of a folder and its tokenizer, or what stands in for them."""
    if args.model:
        model, pooling = bert.Bert.from_folder(args.model), bert.Pooling.from_folder(args.model)
        said = checkpoint.read_json(args.model, "sentence_bert_config.json", missing={})
        longest = min(said.get("max_seq_length") or 10 ** 6, model.config.max_position_embeddings)
        return Embedder(model, pooling, longest, args.batch), checkpoint.read_tokenizer(args.model)
    model = program.realized(bert.Bert(CONFIGS[args.config]))
    tokenizer = checkpoint.ByteTokenizer([model.config.vocab_size - 2], [model.config.vocab_size - 1],
                                         model.config.vocab_size - 2)
    return Embedder(model, bert.Pooling(), model.config.max_position_embeddings, args.batch), tokenizer


def read_texts(args: Any) -> list[str]:
    texts = list(args.texts)
    if args.file:
        with open(args.file, encoding="utf-8") as file:
            texts += [line.rstrip("\n") for line in file if line.strip()]
    if not texts:
        raise ValueError("there are no texts: give some, or --file with one a line")
    return texts


def show(texts: list[str], vectors: list[list[float]], alike: list[list[float]], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"texts": texts, "embeddings": vectors, "similarities": alike}))
        return
    for i, (text, row) in enumerate(zip(texts, alike)):
        print(f"{i + 1:3}  {text}")
        for j, value in sorted(enumerate(row), key=lambda pair: -pair[1]):
            if j != i:
                print(f"     {value:7.4f}  {j + 1:3}  {texts[j]}")


def main(args: Any) -> None:
    texts = read_texts(args)
    embed, tokenizer = read_model(args)
    vectors = embed([tokenizer.encode(text) for text in texts])
    unit = Tensor(vectors, dtype=dtypes.float32).normalize(dim=-1)
    show(texts, vectors, (unit @ unit.T).tolist(), args.json)


if __name__ == "__main__":
    options = program.parser(__doc__, list(CONFIGS))
    options.add_argument("texts", nargs="*", metavar="TEXT")
    options.add_argument("--file", help="more texts, one a line")
    options.add_argument("--batch", type=int, default=32, help="texts that are computed together")
    program.run(main, options)
