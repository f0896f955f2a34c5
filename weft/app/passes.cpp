// `weft explain --passes`: what every step of the compiler did.
#include <algorithm>
#include <memory>

#include "weft/app/app.h"
#include "weft/app/bench_models.h"
#include "weft/app/commands.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/graph/parse.h"
#include "weft/graph/verify.h"
#include "weft/run/explain_passes.h"
#include "weft/run/passes.h"
#include "weft/run/run_state.h"

namespace weft {
namespace {

/// What the tables say of a pass, and what it did to everything that was compiled.
struct Row {
  PassRow pass;
  int64_t runs = 0, changed = 0, firings = 0;
  int64_t size_before = 0, size_after = 0;
  uint64_t ns = 0;
};

void add(const PassRecord& p, std::vector<Row>& rows) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) {
    return std::string_view(r.pass.name) == p.pass;
  });
  WEFT_CHECK(row != rows.end(), "pass {} is in no table", p.pass);
  ++row->runs;
  row->changed += p.changed();
  row->firings += p.firings;
  row->size_before += p.before.size;
  row->size_after += p.after.size;
  row->ns += p.ns;
}

void print_table(const Session& session, const std::vector<Row>& rows) {
  session.print("{:<26}{:>6}{:>9}{:>9}{:>9}{:>9}{:>9}  afterwards\n", "pass", "runs", "changed",
                "rules", "size", "to", "us");
  for (const Row& r : rows)
    if (r.runs > 0)
      session.print("{:<26}{:>6}{:>9}{:>9}{:>9}{:>9}{:>9.0f}  {}\n", r.pass.name, r.runs, r.changed,
                    r.firings, r.size_before, r.size_after, static_cast<double>(r.ns) / 1e3,
                    r.pass.after);
}

void print_json(const Session& session, const PassRecord& p) {
  JsonWriter json;
  json.begin_object().field("kind", "pass").field("pass", p.pass).field("subject", p.subject);
  json.field("changed", p.changed()).field("size_before", p.before.size);
  json.field("size_after", p.after.size).field("rules", p.firings);
  json.field("us", static_cast<double>(p.ns) / 1e3);
  if (!p.text_before.empty() || !p.text_after.empty())
    json.field("before", p.text_before).field("after", p.text_after);
  session.print("{}\n", json.end_object().text());
}

void print_texts(const Session& session, const PassRecord& p) {
  session.print("{}\n", session.bold(text(p).substr(2)));
  if (p.changed()) session.print("before:\n{}\nafter:\n{}\n", p.text_before, p.text_after);
}

bool asked_for(const ExplainOptions& options, const PassRecord& p) {
  return p.subject.find(options.kernel) != std::string::npos &&
         std::string_view(p.pass).find(options.pass) != std::string_view::npos;
}

void write_text(const std::string& path, const std::string& text) {
  atomic_write_file(path, [&](FileWriter& file) { file.write(text); }, Keep::Checked);
}

/// One file for each state: what parse_graph() reads, up to the list of instructions.
void dump(const std::string& folder, std::span<const PassRecord> records) {
  make_directories(folder);
  for (size_t i = 0; i < records.size(); ++i) {
    const PassRecord& p = records[i];
    const std::string name =
        strformat("{}/{:05}.{}.{}", folder, i, p.subject.substr(0, 80), p.pass);
    write_text(name + ".before.wt", p.text_before);
    if (p.changed()) write_text(name + ".after.wt", p.text_after);
  }
}

using Records = std::vector<PassRecord>;

Records passes_of_model(Context& context, const std::string& name, bool texts) {
  const std::unique_ptr<BenchModel> model = make_bench_model(name);
  const std::vector<Tensor> changed = model->step();
  CompileObserver& observer = context.get<RunState>().observer;
  Records records;
  observer.passed = [&](const PassRecord& p) { records.push_back(p); };
  observer.texts = texts;
  realize(changed);
  observer = {};
  return records;
}

/// What a dump holds: values, or a kernel.
Records passes_of_file(Context& context, const std::string& path, bool texts) {
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  Graph graph;
  const std::vector<NodeRef> roots = parse_graph(graph, text, path);
  if (roots.size() == 1 && roots[0]->op == Op::Sink)
    check_kernel(roots[0], path);
  else
    check_tensor_graph(roots, path);
  return explain_passes(context, roots, texts);
}

void list_passes(const Session& session, const std::vector<Row>& rows) {
  for (const Row& r : rows) {
    if (!session.json) {
      session.print("{:<26}  {}{}\n", r.pass.name, r.pass.after,
                    r.pass.optional ? " (optional)" : "");
      continue;
    }
    JsonWriter json;
    json.begin_object().field("pass", r.pass.name).field("after", r.pass.after);
    json.field("optional", r.pass.optional).end_object();
    session.print("{}\n", json.text());
  }
}

}  // namespace

int explain_passes(const Session& session, const ExplainOptions& asked) {
  std::vector<Row> rows;
  for (const PassRow& pass : all_passes()) rows.push_back({pass});
  if (asked.code.empty()) {
    list_passes(session, rows);
    return kExitOk;
  }
  Options options = session.context.options();
  options.dev = null_device(session.context, options.dev);
  Context context(std::move(options));
  const ContextScope scope(context);
  const bool shown = !asked.kernel.empty() || !asked.pass.empty(),
             texts = shown || !asked.dump.empty();
  Records records = is_bench_model(asked.code) ? passes_of_model(context, asked.code, texts)
                                               : passes_of_file(context, asked.code, texts);
  std::erase_if(records, [&](const PassRecord& p) { return !asked_for(asked, p); });
  if (!asked.dump.empty()) dump(asked.dump, records);
  for (const PassRecord& p : records) {
    if (session.json)
      print_json(session, p);
    else if (shown && asked.dump.empty())
      print_texts(session, p);
    add(p, rows);
  }
  if (!session.json) print_table(session, rows);
  return kExitOk;
}

}  // namespace weft
