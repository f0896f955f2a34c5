// weft.h in C11: that it compiles there, and that its inline parts work.
#include <string.h>

#include "weft/c/llm.h"

_Static_assert(sizeof(weft_value) == 32, "weft_value never changes its layout");

// The sum of 0 to 9, computed in C; negative: what went wrong.
int weft_header_test(void) {
  weft_context context = NULL;
  weft_tensor x = NULL, sum = NULL;
  weft_value item;
  weft_error error = WEFT_STRUCT(weft_error);
  const weft_value ten = weft_int(10);
  size_t count = 0;
  if (weft_context_create(NULL, &context) != WEFT_OK) return -1;
  if (weft_apply(context, "arange", &ten, 1, &x, 1, &count) != WEFT_OK || count != 1) return -2;
  const weft_value arguments[] = {weft_arg(x), weft_named("keepdim", weft_bool(true))};
  if (weft_apply(NULL, "sum", arguments, 2, &sum, 1, NULL) != WEFT_OK) return -3;
  if (weft_tensor_item(sum, &item) != WEFT_OK || item.kind != WEFT_INT) return -4;
  if (weft_apply(context, "no such thing", NULL, 0, &x, 1, NULL) != WEFT_ERROR_VALUE) return -5;
  if (weft_last_error(&error) != WEFT_OK || strcmp(error.code, "apply.name") != 0) return -6;
  weft_tensor_release(x);
  weft_tensor_release(sum);
  weft_context_release(context);
  return (int)item.as.integer;
}
