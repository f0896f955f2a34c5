// llm.h: language models in C: weft.h says how errors, handles, structs and threads are meant.
#ifndef WEFT_C_LLM_H
#define WEFT_C_LLM_H

#include "weft/c/weft.h"

#ifdef __cplusplus
extern "C" {
#endif

// Zeros are the defaults.
typedef struct weft_llm_options {
  uint32_t struct_size;
  weft_dtype cache;  // of keys and values: WEFT_F16 (the default), WEFT_F32, or WEFT_I8 and scales
  int64_t context;   // tokens of a text, at most the model's; 0: 4096; -1: the model's
  uint32_t slots;    // requests that run at once; 0: 1
  uint32_t queue;    // requests that wait; 0: 1024
  // Tokens guessed ahead at most (5) and checked in one step; answers stay the same. 0: none.
  uint32_t draft_tokens;
  uint32_t reserved;        // 0
  const char* draft_model;  // a smaller one that guesses; NULL: what followed in the text so far
  // What factors of products with weights are rounded to: "f32" (not at all), "bf16", "q8" (8
  // bits); NULL: 8 bits where the machine multiplies bytes.
  const char* factors;
  const char* const* lora;  // adapters beside the weights; ends with NULL, or is NULL
} weft_llm_options;
// A GGUF file (of several the first), or a folder of Hugging Face's. Weights are used where they
// lie in the file. `options` may be NULL.
WEFT_API weft_status weft_llm_open(weft_context context, const char* path,
                                   const weft_llm_options* options, weft_llm* out);
typedef struct weft_llm_info {
  uint32_t struct_size;
  uint32_t slots;
  int64_t context, vocabulary, layers;
  int64_t weight_bytes, cache_bytes;
  const char* name;
  const char* family;  // "llama"
} weft_llm_info;       // texts live as long as the model
WEFT_API weft_status weft_llm_describe(weft_llm model, weft_llm_info* out);
// The model's; as long as it lives, so does the model.
WEFT_API weft_status weft_llm_tokenizer(weft_llm model, weft_tokenizer* out);
WEFT_API void weft_llm_release(weft_llm model);

enum {
  WEFT_LLM_IGNORE_END = 1,  // goes on after the model's end of text
  WEFT_LLM_LOGPROBS = 2,    // gives tokens' probabilities
  WEFT_LLM_NEW_TEXT = 4,    // does not go on with the prompt's text: no space before its first word
  WEFT_LLM_FROM_START = 8   // computes all of the prompt, whatever an earlier text left of it
};
// What comes after a prompt. Zeros are neutral: the likeliest tokens, as far as the context
// reaches.
typedef struct weft_llm_request {
  uint32_t struct_size;
  uint32_t flags;
  const int32_t* prompt;
  uint64_t prompt_count;
  int64_t max_tokens;        // 0: as far as the context reaches
  const char* const* stop;   // texts that end it and are not part of it; ends with NULL, or is NULL
  const char* json_schema;   // that the answer follows; NULL: none
  const char* grammar;       // in GBNF, likewise; one of these
  uint64_t seed;             // the same for the same answer
  float temperature;         // 0: the likeliest token
  int32_t top_k;             // of so many likeliest tokens; 0: all
  float top_p;               // of the likeliest whose probabilities sum to this; 0: all
  float min_p;               // of those not below this share of the likeliest one's
  float typical_p;           // locally typical sampling; 0: none
  float repetition_penalty;  // 0 and 1: none
  float presence_penalty;
  float frequency_penalty;
  int32_t penalised_tokens;  // looked back for the penalties; 0: 64; -1: all
  uint32_t bias_count;
  const int32_t* bias_tokens;  // bias_count tokens and what their logits get more
  const float* biases;
  const char* pattern;         // a regular expression that all of it matches; not with a grammar
  const char* const* choices;  // of which it is one, likewise; ends with NULL, or is NULL
  int64_t min_tokens;          // before that none is drawn that would end it
  const int32_t* stop_tokens;  // stop_token_count ids that end it, too
  uint32_t stop_token_count;
  float mirostat_tau;  // above 0: Mirostat 2 at this surprise, in place of top_k to min_p
  float mirostat_eta;  // its learning rate; 0: 0.1
  uint32_t reserved;   // 0
} weft_llm_request;
// Queues it. Nothing is computed but in weft_llm_step().
WEFT_API weft_status weft_llm_submit(weft_llm model, const weft_llm_request* request,
                                     uint64_t* out);
// Frees its slot before the next step, which gives WEFT_LLM_CANCELLED. One that is gone: no error.
WEFT_API weft_status weft_llm_cancel(weft_llm model, uint64_t request);
// A part of a prompt, or a token of each request that runs. *count requests got something.
WEFT_API weft_status weft_llm_step(weft_llm model, size_t* count);
WEFT_API weft_status weft_llm_is_idle(weft_llm model, bool* out);  // nothing waits, nothing runs

enum {
  WEFT_LLM_RUNNING = 0,
  WEFT_LLM_STOPPED = 1,  // the model's end, or a stop text
  WEFT_LLM_LENGTH = 2,   // max_tokens, or the context's end
  WEFT_LLM_CANCELLED = 3,
  WEFT_LLM_FAILED = 4
};
typedef struct weft_llm_progress {
  uint32_t struct_size;
  uint32_t finish;
  uint64_t request;
  const char* text;  // whole characters, and a 0 behind them
  uint64_t text_length;
  const int32_t* tokens;
  const float* logprobs;  // natural logarithms, of the model's own distribution; or NULL
  uint64_t token_count;
  const char* error;  // "", or why it failed
} weft_llm_progress;  // what it points to lives until the model's next step
// What the last step gave: `index` is below its count.
WEFT_API weft_status weft_llm_progress_at(weft_llm model, size_t index, weft_llm_progress* out);
// A request from its submission to its end, alone. Where progress() does not return WEFT_OK, the
// request is cancelled, and that is returned. progress() may submit and cancel requests of this
// model, but neither step nor generate.
WEFT_API weft_status weft_llm_generate(weft_llm model, const weft_llm_request* request,
                                       weft_status (*progress)(void* user,
                                                               const weft_llm_progress* p),
                                       void* user);

// The mean of the last layer's hidden states, of unit length. A slot must be free. *count: how many
// numbers it has, also where there is no room for them; NULL asks for it alone.
WEFT_API weft_status weft_llm_embedding(weft_llm model, const int32_t* tokens, size_t token_count,
                                        float* numbers, size_t capacity, size_t* count);
// Of each token's successor: f32 (tokens, vocabulary). A slot must be free.
WEFT_API weft_status weft_llm_logits(weft_llm model, const int32_t* tokens, size_t token_count,
                                     weft_tensor* out);
// Writes a GGUF file with fewer bits: `mix` is one of llama.cpp's, "Q4_K_M". `requantize`: what is
// packed already, too, which loses more.
WEFT_API weft_status weft_llm_quantize(const char* path, const char* out_path, const char* mix,
                                       bool requantize);

#ifdef __cplusplus
}
#endif

#endif
