// A language model in C: generate MODEL.gguf "Once upon a time".
#include <stdio.h>

#include "weft/c/llm.h"

static weft_status print(void* user, const weft_llm_progress* p) {
  (void)user;
  printf("%s%s", p->text, p->error);
  fflush(stdout);
  return WEFT_OK;
}

static int said_why(void) {
  weft_error error = WEFT_STRUCT(weft_error);
  weft_last_error(&error);
  fprintf(stderr, "%s\n", error.text);
  return 1;
}

int main(int count, char** arguments) {
  weft_context context = NULL;
  weft_llm model = NULL;
  weft_tokenizer tokenizer = NULL;
  int32_t prompt[4096];
  size_t length = 0;
  weft_llm_request request = WEFT_STRUCT(weft_llm_request);
  if (count != 3) return fprintf(stderr, "usage: generate MODEL PROMPT\n"), 2;
  if (weft_context_create(NULL, &context) || weft_llm_open(context, arguments[1], NULL, &model) ||
      weft_llm_tokenizer(model, &tokenizer) ||
      weft_tokenizer_encode(tokenizer, arguments[2], true, prompt, 4096, &length))
    return said_why();
  request.prompt = prompt;
  request.prompt_count = length;
  request.max_tokens = 100;
  request.temperature = 0.8f;
  request.top_p = 0.95f;
  if (weft_llm_generate(model, &request, print, NULL)) return said_why();
  puts("");
  weft_tokenizer_release(tokenizer);
  weft_llm_release(model);
  weft_context_release(context);
  return 0;
}
