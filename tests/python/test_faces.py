"""Python offers what C++ offers: docs/faces.md is the table of both, and a hole in it fails here."""
import faces
import weft
from weft import nn


def test_no_holes():
    holes = [(name, header) for name, header, python in (*faces.functions(), *faces.networks(), *faces.data(), *faces.texts())
             if python is None and name not in faces.CPP_ONLY]
    assert holes == []
    assert len(faces.functions()) > 250 and len(faces.networks()) > 50


def test_what_the_table_says_is_there():
    for _, _, python in (*faces.functions(), *faces.networks(), *faces.data(), *faces.texts()):
        if python and python.replace(".", "").replace("_", "").isalnum() and "." in python:
            holder = {"Tensor": weft.Tensor, "weft": weft, "helpers": weft.helpers}[python.split(".")[0]]
            for name in python.split(".")[1:]:
                holder = getattr(holder, name)


def test_the_page_is_fresh():
    path = faces.SOURCE / "docs" / "faces.md"
    assert path.read_text() == faces.page(), f"python tests/python/faces.py > {path}"


DEFAULTS = {  # C++'s struct of options, its header, and the Python class with the same defaults: their names in both
    "AdamOptions": ("adam.h", nn.optim.Adam, {"lr": "lr", "beta1": "b1", "beta2": "b2", "eps": "eps", "weight_decay": "weight_decay"}),
    "RecurrentOptions": ("recurrent.h", nn.LSTM, {"layers": "num_layers", "bias": "bias", "batch_first": "batch_first",
                                                  "dropout": "dropout", "bidirectional": "bidirectional"}),
    "HeadOptions": ("attention.h", nn.MultiheadAttention, {"dropout": "dropout", "bias": "bias", "batch_first": "batch_first"}),
    "TransformerOptions": ("attention.h", nn.TransformerEncoderLayer, {
        "feedforward": "dim_feedforward", "dropout": "dropout", "eps": "layer_norm_eps", "batch_first": "batch_first",
        "norm_first": "norm_first", "bias": "bias"}),
    "EmaOptions": ("ema.h", nn.Ema, {"decay": "decay", "warm_up": "warm_up"}),
    "PlateauOptions": ("schedules.h", nn.schedules.ReduceOnPlateau, {
        "factor": "factor", "patience": "patience", "threshold": "threshold", "larger_is_better": "larger_is_better",
        "cooldown": "cooldown", "least": "least"}),
    "OneCycleOptions": ("schedules.h", nn.schedules.one_cycle, {"rise": "rise", "start_divisor": "start_divisor",
                                                                "end_divisor": "end_divisor", "cosine": "cosine"}),
    "LoaderOptions": ("../io/data_loader.h", weft.data.DataLoader, {"batch": "batch_size", "shuffle": "shuffle", "seed": "seed",
                                                                    "drop_last": "drop_last", "prefetch": "prefetch"}),
    "CsvOptions": ("../io/csv.h", weft.data.read_csv, {"header": "header"}),
}


def test_defaults_are_the_same():
    import inspect
    import re
    for struct, (header, python, names) in DEFAULTS.items():
        text = (faces.SOURCE / "weft" / "nn" / header).read_text()
        body = text[text.index(f"struct {struct} {{"):]
        body = body[:body.index("\n};")]
        given = inspect.signature(python).parameters
        for ours, theirs in names.items():
            value = re.search(rf"\b{ours} = ([\w.+-]+)", body).group(1)
            want = {"true": True, "false": False}.get(value, None)
            want = float(value) if want is None else want
            assert given[theirs].default == want, (struct, ours)
