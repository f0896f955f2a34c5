// A program in C that uses an installed weft: a matrix product and its gradient.
#include <math.h>
#include <stdio.h>
#include <weft/c/weft.h>

static int failed(const char* what) {
  weft_error e = WEFT_STRUCT(weft_error);
  weft_last_error(&e);
  fprintf(stderr, "%s: %s\n", what, e.text);
  return 1;
}

int main(void) {
  weft_context context = NULL;
  weft_tensor x = NULL, w = NULL, y = NULL, loss = NULL, grad = NULL;
  const int64_t shape[] = {2, 2};
  const float data[] = {1, 2, 3, 4};
  float out[4];
  weft_array array = WEFT_STRUCT(weft_array);
  array.dtype = WEFT_F32;
  array.rank = 2;
  array.shape = shape;
  array.data = data;
  array.bytes = sizeof(data);
  if (weft_context_create(NULL, &context)) return failed("context");
  if (weft_tensor_create(context, &array, &x)) return failed("create");
  if (weft_tensor_create(context, &array, &w)) return failed("create");
  if (weft_tensor_set_requires_grad(w, true)) return failed("requires_grad");
  const weft_value product[] = {weft_arg(x), weft_arg(w)};
  if (weft_apply(NULL, "matmul", product, 2, &y, 1, NULL)) return failed("matmul");
  const weft_value all = weft_arg(y);
  if (weft_apply(NULL, "sum", &all, 1, &loss, 1, NULL)) return failed("sum");
  if (weft_backward(loss, NULL)) return failed("backward");
  if (weft_tensor_grad(w, &grad)) return failed("grad");
  if (weft_tensor_copy_out(grad, out, sizeof(out))) return failed("copy_out");
  const weft_tensor handles[] = {x, w, y, loss, grad};
  for (size_t i = 0; i < 5; ++i) weft_tensor_release(handles[i]);
  weft_context_release(context);
  printf("c: weft %s, gradient %g %g %g %g\n", weft_version(), out[0], out[1], out[2], out[3]);
  return out[0] == 4 && out[1] == 4 && out[2] == 6 && out[3] == 6 ? 0 : 1;
}
