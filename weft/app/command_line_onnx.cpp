#include "weft/app/command_line.h"

namespace weft {

namespace {

CLI::App* onnx_command(CLI::App& onnx, CommandLine& line, const char* name, const char* what) {
  CLI::App* sub = subcommand(onnx, line, name, what);
  sub->add_option("model", line.onnx.model, "an .onnx file")->required();
  sub->add_option("--size", line.onnx.sizes,
                  "a size that the model names, as batch=8; 1 where none is given")
      ->type_name("NAME=N");
  add_machine_options(sub, line);
  return sub;
}

void add_onnx_inputs(CLI::App* sub, OnnxOptions& o) {
  sub->add_option("--input", o.inputs, "an input; random where none is given")
      ->type_name("NAME=FILE.npy");
  sub->add_option("--seed", o.seed, "of random inputs")->capture_default_str();
}

}  // namespace

void add_onnx(CLI::App& app, CommandLine& line) {
  CLI::App* onnx = app.add_subcommand("onnx", "look at, run, time and check ONNX models");
  onnx->require_subcommand(1);
  OnnxOptions& o = line.onnx;
  onnx_command(*onnx, line, "inspect", "inputs, outputs, operators, parameters, work of a model");
  CLI::App* run = onnx_command(*onnx, line, "run", "run a model and write what it gives");
  add_onnx_inputs(run, o);
  run->add_option("--output", o.output, "directory for one .npy file per output");
  CLI::App* bench =
      onnx_command(*onnx, line, "bench", "time a model: load, first result, later ones");
  add_onnx_inputs(bench, o);
  bench->add_option("--repeats", o.repeats, "measurements; the median counts")
      ->check(in_range<int64_t>(1, 100000))
      ->capture_default_str();
  bench->add_option("--against", o.against, "a peer measured in turns with weft")
      ->check(CLI::IsMember({"ort"}));
  bench->add_option("--python", o.python, "the Python that has the peer")->capture_default_str();
  CLI::App* optimize = subcommand(*onnx, line, "optimize",
                                  "fold constants, merge batch norms, remove what does nothing");
  optimize->add_option("model", o.model, "an .onnx file")->required();
  optimize->add_option("-o,--output", o.output, "the file to write")->required();
  optimize->add_flag("--external-data", o.external_data, "tensors in a file beside the model");
  CLI::App* exported =
      subcommand(*onnx, line, "export", "write a captured function (save_function) as a model");
  exported->add_option("function", o.model, "a file of save_function()")->required();
  exported->add_option("-o,--output", o.output, "the file to write")->required();
  exported->add_option("--opset", o.opset, "of the operators")->capture_default_str();
  exported->add_flag("--external-data", o.external_data, "tensors in a file beside the model");
  add_machine_options(exported, line);
  CLI::App* check = subcommand(*onnx, line, "check", "run backend tests and compare their results");
  check->add_option("directories", o.cases, "folders of cases, as tools/onnx_cases writes them")
      ->required();
  check->add_option("--case", o.which, "only cases with this in their name");
  check->add_option("--most", o.most, "how many that do not pass are listed; 0: all")
      ->check(in_range<int64_t>(0))
      ->capture_default_str();
  add_machine_options(check, line);
}

}  // namespace weft
