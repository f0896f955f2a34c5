#include "weft/text/template.h"

#include "weft/base/error.h"
#include "weft/text/jinja/evaluator.h"

namespace weft::text {

struct JinjaTemplate::Tree {
  jinja::Block block;
};

JinjaTemplate::JinjaTemplate(std::string_view source, std::string_view what)
    : what_(what),
      tree_(std::make_unique<Tree>(
          Tree{jinja::parse_template(jinja::tokens_of(source, what), what)})) {}
JinjaTemplate::~JinjaTemplate() = default;
JinjaTemplate::JinjaTemplate(JinjaTemplate&&) noexcept = default;
JinjaTemplate& JinjaTemplate::operator=(JinjaTemplate&&) noexcept = default;

std::string JinjaTemplate::render(std::string_view variables, const RenderOptions& options) const {
  jinja::Workspace work(options.most_steps, options.most_memory);
  jinja::Evaluator evaluator(work, options);
  try {
    const jinja::Value values = jinja::read_json(variables, "variables of the " + what_, work);
    if (!values.is(jinja::Value::Kind::Dict)) jinja::refuse("the variables are no JSON object");
    return evaluator.run(tree_->block, values);
  } catch (const jinja::Problem& problem) {
    const jinja::Place place = evaluator.place();
    fail_runtime(problem.code, "{}:{}:{}: {}; see the template and what it was given", what_,
                 place.line, place.column, problem.text);
  }
}

}  // namespace weft::text
