// Sequential: layers and functions applied one after the other.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "weft/nn/state.h"

namespace weft::nn {

// Sequential net(Linear(784, 128), &relu, Linear(128, 10)); net(x); parameters(net).
// Names are positions, functions included: "0.weight", "2.weight". A step is anything that takes a
// Tensor and gives one; it is moved or copied in.
class Sequential {
 public:
  template <class... Steps>
  explicit Sequential(Steps... steps) {
    (add(std::move(steps)), ...);
  }

  template <class Step>
  Sequential& add(Step step) {
    steps_.push_back(std::make_unique<Holder<Step>>(std::move(step)));
    return *this;
  }

  Tensor operator()(Tensor x, CallSite at = CallSite::here()) {
    const CallSiteScope site(at);
    for (const auto& step : steps_) x = step->call(x);
    return x;
  }
  void visit(StateVisitor& v) {
    for (size_t i = 0; i < steps_.size(); ++i) v(std::to_string(i), *steps_[i]);
  }
  size_t size() const { return steps_.size(); }

 private:
  struct AnyStep {
    virtual ~AnyStep() = default;
    virtual Tensor call(const Tensor& x) = 0;
    virtual void visit(StateVisitor& v) = 0;
  };
  template <class Step>
  struct Holder : AnyStep {
    explicit Holder(Step held) : step(std::move(held)) {}
    Tensor call(const Tensor& x) override { return step(x); }
    void visit(StateVisitor& v) override {
      if constexpr (Module<Step>) step.visit(v);
    }
    Step step;
  };

  std::vector<std::unique_ptr<AnyStep>> steps_;
};

}  // namespace weft::nn
