// docs/onnx.md is the table of ONNX operators, printed.
#include <gtest/gtest.h>

#include <map>

#include "tests/docs/pages.h"
#include "weft/base/format.h"
#include "weft/onnx/fold.h"
#include "weft/onnx/operators.h"

namespace weft::onnx {
namespace {

using Rows = std::map<std::string_view, std::string>;  // since which opsets, by name

bool folds(std::string_view name) {
  for (const auto rows : {arithmetic_folds(), movement_folds()})
    for (const FoldRow& row : rows)
      if (row.name == name) return true;
  return name == "Shape" || name == "Size" || name == "Constant";
}

std::string table(std::string_view domain, const Rows& rows) {
  std::string text = strformat(
      "\n### {}\n\n{} operators.\n\n| operator | since opset | of known sizes |\n|---|---|---|\n",
      domain.empty() ? "ai.onnx" : domain, rows.size());
  for (const auto& [name, since] : rows)
    append_format(text, "| {} | {} | {} |\n", name, since,
                  domain.empty() && folds(name) ? "known" : "");
  return text;
}

/// What stands before the tables.
constexpr const char* kGuide = R"(# ONNX

## Running a model

`weft.nn.onnx.OnnxRunner(path)` in Python, `weft::onnx::OnnxRunner` (`weft/onnx/runner.h`) in C++, `weft onnx run` in the
shell. The first call for inputs of given types and shapes captures what it launches, later ones replay that. Sizes that
the model only names are one capture for all: of text (whole numbers come in) from the first call on, of anything else from
the second size on. Sizes that come five times in a row are captured for themselves.

## Writing one

`weft.onnx.export(function, inputs, path)` and `weft::onnx::export_onnx()` (`weft/onnx/export.h`) call a function once with
placeholders and write the graph that it builds:

```python
weft.onnx.export(model, Tensor.zeros(1, 3, 224, 224), "model.onnx", input_names=["x"], dynamic_axes={"x": {0: "batch"}})
```

What has an operator of its own becomes that one: products MatMul and Gemm, windows with a product Conv, pools, Softmax,
LayerNormalization, BatchNormalization, reductions, Gather, TopK, activations; other ops become one or several elementwise
operators; loops with state Scan. Tensors of a module are initialisers with the names of its state dict, what is computed
from constants alone is a constant. Sizes with names stay names. Opsets 18 to 23 (20 where none is given). With
`external_data`, and above 2 GiB, tensors lie in `model.onnx.data`. An index outside of an axis, which in weft reads 0, is
an error in ONNX. Random numbers, writes to tensors, kernels of one's own, and ops that ONNX lacks (bitcast) are one error
that lists all of them.

## Training one

```python
model = OnnxRunner("model.onnx")
optimizer = nn.optim.Adam(model.parameters())
((model({"x": x})["y"] - wanted) ** 2).mean().backward()
model.save("trained.onnx")
```

`state_dict()` has the initialisers of floats, in memory of their own; the file is never written to. `parameters()` are
those of them that are trained: no numbers of rank 0, no statistics of a BatchNormalization, no scales of a Resize. While
one of them has `requires_grad`, calls give outputs that are not computed yet; `TinyJit` of the step captures it.

## Making one smaller

`weft onnx optimize MODEL -o OUT` and `weft::onnx::optimised()` (`weft/onnx/optimise.h`) work on the file's own graph:
nodes of constants are computed, Identity and Dropout go, batch norms are merged into the convolutions before them, pairs
of Transposes become one or none, equal initialisers are shared, and what nothing reads goes. It prints what was done.

## Operators
)";

/// What ONNX Runtime 1.32 runs on CPUs and weft does not; what it has for GPUs alone is not listed.
constexpr const char* kMissing = R"(
### com.microsoft: not supported

| operator of ONNX Runtime's CPU provider | instead |
|---|---|
| AttnLSTM | Loop or Scan with LSTM's steps; no exporter writes it |
| BeamSearch, GreedySearch, Sampling, WhisperBeamSearch | export the decoder without the search around it, and search outside: `weft llm`, `weft.llm` |
| EngramGate | its parts: RMS norms, a product, Sigmoid |
| GatherPacked | GatherBlockQuantized |
| MatMulFpQ4 | MatMulNBits; its weights are laid out for ONNX Runtime's own CPU kernels |
| MaxpoolWithMask | Where and MaxPool; no exporter writes it |
| SampleOp | a test of ONNX Runtime's |
| SparseAttention | GroupQueryAttention with an attention_bias |
| SparseToDenseMatMul | MatMul; sparse initialisers become dense |
| Tokenizer, WordConvEmbedding | the tokenizer outside of the model: `weft.text` |

Of what is listed above: GroupQueryAttention without a quantised or sliding cache, Attention without a shared buffer
(DecoderMaskedMultiHeadAttention has one), MoE and QMoE without `use_sparse_mixer` and with integers alone, GatedDeltaNet
without `cu_seqlens`.

### Backend tests

Of the 2,024 of onnx 1.23.2, 2,020 pass. `test_dft_inverse` and `test_dft_inverse_opset19` want imaginary parts of 1.9e-7
where the exact ones are 0 (ONNX Runtime 1.32 fails them as well); of `test_attention_4d_causal_fp16` and its expanded
form one and two elements of 192 are two steps of f16 away from what they want (ONNX Runtime: one and none).
)";

TEST(Pages, Onnx) {
  std::map<std::string_view, Rows> domains;
  for (const auto family : operator_families())
    for (const Operator& o : family) {
      std::string& since = domains[o.domain][o.name];
      since += (since.empty() ? "" : ", ") + std::to_string(o.since);
    }
  std::string page = kGuide;
  page +=
      "\nMade from the tables of `weft/onnx/*_operators.cpp`. An operator runs "
      "in "
      "every opset of its domain from the one\nlisted on; where its meaning changed, it has "
      "several "
      "rows, and smaller changes are looked up in the node's opset.\n`known`: of sizes that are "
      "known, or symbolic, it computes sizes, and compiles no kernel.\n\n`weft onnx inspect MODEL` "
      "lists what a model needs, and what of it is missing. `tools/onnx_cases DIR` writes the "
      "backend\ntests of the PyPI package onnx, and `weft onnx check DIR` runs them.\n\nTypes: all "
      "of ONNX but complex numbers. float8 is stored as such; int4, int2 lie in i8, uint4, uint2 "
      "in "
      "u8, float4, float6\nand float8e8m0 in f32, one element after the other. Strings live on the "
      "host.\n";
  for (const auto& [domain, rows] : domains) page += table(domain, rows);
  page += kMissing;
  expect_page("onnx.md", page);
}

}  // namespace
}  // namespace weft::onnx
