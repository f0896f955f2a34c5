// llm_train.h: training language models in C: weft.h says how errors, handles, structs and threads
// are meant.
#ifndef WEFT_C_LLM_TRAIN_H
#define WEFT_C_LLM_TRAIN_H

#include "weft/c/weft.h"

#ifdef __cplusplus
extern "C" {
#endif

// A new model that learns from texts, and the folder in which all of that lies. Options are named
// values, those of `weft llm train`, with _ for -: weft_named("steps", weft_int(1000)),
// weft_named("optimizer", weft_text("muon")). Lists are several values of one name:
// weft_named("data", weft_text("texts")) for each file or folder. Without data what is in the
// folder goes on from its checkpoint, with equal options, to the same losses bit by bit.
WEFT_API weft_status weft_llm_train(weft_context context, const char* folder,
                                    const weft_value* options, size_t count, weft_training* out);
// An adapter (LoRA) beside the weights of `model`, a GGUF file or a folder, which stay as they are:
// options are those of `weft llm finetune`.
WEFT_API weft_status weft_llm_finetune(weft_context context, const char* folder, const char* model,
                                       const weft_value* options, size_t count, weft_training* out);

typedef struct weft_training_info {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t steps, all_steps;  // taken; in all
  int64_t parameters, tokens_per_step;
  double learning_rate;  // of the next step
} weft_training_info;
WEFT_API weft_status weft_training_describe(weft_training training, weft_training_info* out);
// Of the next batch, in nats of a token.
WEFT_API weft_status weft_training_step(weft_training training, float* loss);
// The mean loss of texts that are not trained on, the same every time.
WEFT_API weft_status weft_training_validate(weft_training training, double* loss);
// A continuation of `prompt` by the weights as they are, as weft_context_get() gives texts.
WEFT_API weft_status weft_training_sample(weft_training training, const char* prompt,
                                          int64_t tokens, uint64_t seed, char* text,
                                          size_t capacity, size_t* length);
// A checkpoint and log.jsonl, each replaced atomically.
WEFT_API weft_status weft_training_save(weft_training training);
// model.gguf and model.safetensors with what belongs to it; of an adapter adapter.gguf, and a
// folder for PEFT.
WEFT_API weft_status weft_training_export(weft_training training);
WEFT_API void weft_training_release(weft_training training);

#ifdef __cplusplus
}
#endif

#endif
