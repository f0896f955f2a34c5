"""Which text fits a picture, with CLIP: classes that nobody has trained for.

    python examples/match_images.py --model clip-vit-base-patch32 cat.jpg dog.png --texts "a cat" "a dog"
"""
import json
from typing import Any

from models import checkpoint, clip, pictures, program
from weft import Tensor, TinyJit, dtypes

CONFIGS = {"tiny": clip.TINY, "clip-vit-base-patch32": clip.ClipConfig()}
# https://huggingface.co/openai/clip-vit-base-patch32/blob/main/preprocessor_config.json
MEAN, DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def prepared(path: str, size: int) -> Tensor:
    """(3, size, size): the shorter side resized, the middle cut out, normalised."""
    x = pictures.read(path)
    h, w = (max(size, side * size // min(x.shape[1:])) for side in x.shape[1:])
    top, left = (h - size) // 2, (w - size) // 2
    x = pictures.resized(x, h, w, "cubic").clamp(0, 1)[:, top:top + size, left:left + size]
    return (x - Tensor(MEAN).reshape(3, 1, 1)) / Tensor(DEVIATION).reshape(3, 1, 1)


def padded(rows: list[list[int]], longest: int) -> Tensor:
    """Texts filled up with their last token, which is where the model looks, at its first place."""
    rows = [[*row[:-1][:longest - 1], row[-1]] for row in rows]
    return Tensor([row + row[-1:] * (longest - len(row)) for row in rows], dtype=dtypes.int32)


def read_model(args: Any) -> tuple[clip.Clip, Any]:
    if args.model:
        return clip.Clip.from_folder(args.model), clip.read_tokenizer(args.model)
    model = program.realized(clip.Clip(CONFIGS[args.config]))
    text = model.config.text
    return model, checkpoint.ByteTokenizer([text.bos_token_id], [text.eos_token_id], text.bos_token_id)


def main(args: Any) -> None:
    model, tokenizer = read_model(args)
    texts = model.text_features(padded([tokenizer.encode(text) for text in args.texts],
                                       model.config.text.max_position_embeddings)).realize()

    @TinyJit
    def fits(image: Tensor) -> Tensor:
        return (model.image_features(image.unsqueeze(0)) @ texts.T * model.logit_scale.exp())[0].softmax(-1)

    for path in args.pictures:
        found = dict(zip(args.texts, fits(prepared(path, model.config.vision.image_size).contiguous().realize()).tolist()))
        if args.json:
            print(json.dumps({"picture": path, "probabilities": found}))
            continue
        print(path)
        for text, p in sorted(found.items(), key=lambda pair: -pair[1]):
            print(f"  {100 * p:5.1f} %  {'█' * round(30 * p):30}  {text}")


if __name__ == "__main__":
    options = program.parser(__doc__, list(CONFIGS))
    options.add_argument("pictures", nargs="+", metavar="PICTURE", help="PNG or JPEG")
    options.add_argument("--texts", nargs="+", required=True, metavar="TEXT", help="what may be on the pictures")
    program.run(main, options)
