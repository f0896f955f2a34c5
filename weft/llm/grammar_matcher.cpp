// A pushdown automaton over bytes, made deterministic as far as answers go: a state is the set of
// stacks that the bytes so far may have left.
#include <algorithm>
#include <cstring>

#include "weft/base/error.h"
#include "weft/llm/grammar.h"

namespace weft::llm {

namespace {
constexpr uint32_t kBottom = 0;                               // the empty stack: the answer may end
constexpr uint32_t kDeepest = 1000;                           // of a stack
constexpr size_t kMostStacks = 10000;                         // of a state
constexpr size_t kMostStates = 20000, kMostFrames = 2000000;  // before all is forgotten
}  // namespace

GrammarMatcher::GrammarMatcher(std::shared_ptr<const Grammar> grammar,
                               std::shared_ptr<const GrammarVocabulary> vocabulary)
    : grammar_(std::move(grammar)), vocabulary_(std::move(vocabulary)) {
  frames_.push_back({0, kBottom, 0});
  std::vector<uint32_t> stacks;
  for (const uint32_t alternative : grammar_->rules_[grammar_->root_])
    expand(alternative, kBottom, stacks);
  at_ = state_of(std::move(stacks));
}

uint32_t GrammarMatcher::push(uint32_t element, uint32_t below) {
  const uint64_t key = uint64_t{element} << 32 | below;
  const auto [place, is_new] = frame_ids_.try_emplace(key, static_cast<uint32_t>(frames_.size()));
  if (is_new) frames_.push_back({element, below, frames_[below].depth + 1});
  return place->second;
}

/// Stacks whose top is a byte, of what begins at `element` with `below` after its rule.
void GrammarMatcher::expand(uint32_t element, uint32_t below, std::vector<uint32_t>& stacks) {
  using Kind = Grammar::Element::Kind;
  std::vector<std::pair<uint32_t, uint32_t>> todo{{element, below}};
  while (!todo.empty()) {
    const auto [at, under] = todo.back();
    todo.pop_back();
    const Grammar::Element& e = grammar_->elements_[at];
    if (frames_[under].depth > kDeepest) continue;  // nested deeper than anybody reads
    if (stacks.size() > kMostStacks || todo.size() > kMostStacks)
      fail_runtime("llm.grammar",
                   "the grammar can be read in more than {} ways at once; write it with "
                   "fewer alternatives that begin alike",
                   kMostStacks);
    if (e.kind == Kind::Bytes) {
      stacks.push_back(push(at, under));
    } else if (e.kind == Kind::Rule) {
      // What follows the rule, unless it is the end: then what is under does.
      const bool last = grammar_->elements_[at + 1].kind == Kind::End;
      const uint32_t after = last ? under : push(at + 1, under);
      for (const uint32_t alternative : grammar_->rules_[e.index])
        todo.emplace_back(alternative, after);
    } else if (under == kBottom) {
      stacks.push_back(kBottom);
    } else {
      todo.emplace_back(frames_[under].element, frames_[under].below);
    }
  }
}

int32_t GrammarMatcher::state_of(std::vector<uint32_t> stacks) {
  if (stacks.empty()) return kDead;
  std::sort(stacks.begin(), stacks.end());
  stacks.erase(std::unique(stacks.begin(), stacks.end()), stacks.end());
  std::string key(stacks.size() * sizeof(uint32_t), '\0');
  std::memcpy(key.data(), stacks.data(), key.size());
  const auto [place, is_new] =
      state_ids_.try_emplace(std::move(key), static_cast<int32_t>(states_.size()));
  if (is_new) {
    auto state = std::make_unique<State>();
    state->stacks = std::move(stacks);
    state->next.fill(kUnknown);
    states_.push_back(std::move(state));
  }
  return place->second;
}

int32_t GrammarMatcher::next_state(int32_t state, uint8_t byte) {
  const int32_t known = states_[static_cast<size_t>(state)]->next[byte];
  return known == kUnknown ? make_next(state, byte) : known;
}

int32_t GrammarMatcher::make_next(int32_t state, uint8_t byte) {
  std::vector<uint32_t> stacks;
  for (const uint32_t stack : states_[static_cast<size_t>(state)]->stacks) {
    if (stack == kBottom) continue;
    const Frame frame = frames_[stack];
    if (grammar_->sets_[grammar_->elements_[frame.element].index][byte])
      expand(frame.element + 1, frame.below, stacks);
  }
  const int32_t next = state_of(std::move(stacks));
  states_[static_cast<size_t>(state)]->next[byte] = next;
  return next;
}

bool GrammarMatcher::complete() const {
  return ended_ || states_[static_cast<size_t>(at_)]->stacks.front() == kBottom;
}

bool GrammarMatcher::finished() {
  if (ended_) return true;
  const std::vector<uint32_t>& stacks = states_[static_cast<size_t>(at_)]->stacks;
  return stacks.size() == 1 && stacks.front() == kBottom;
}

std::span<const uint64_t> GrammarMatcher::allowed() {
  if (states_[static_cast<size_t>(at_)]->mask.empty()) make_mask(at_);
  return states_[static_cast<size_t>(at_)]->mask;
}

/// One walk over the tree of all tokens; what a byte rules out is left out with all that begins so.
void GrammarMatcher::make_mask(int32_t state) {
  std::vector<uint64_t> mask((vocabulary_->size() + 63) / 64 + 1);
  const auto allow = [&](text::TokenId id) {
    mask[static_cast<size_t>(id) / 64] |= uint64_t{1} << (static_cast<size_t>(id) % 64);
  };
  if (complete())
    for (const text::TokenId id : vocabulary_->end_tokens_) allow(id);
  std::vector<int32_t> path{state};  // the states after 0, 1, ... bytes
  const auto& nodes = vocabulary_->nodes_;
  for (size_t i = 0; i < nodes.size();) {
    path.resize(nodes[i].depth);
    const int32_t next = next_state(path.back(), nodes[i].byte);
    if (next == kDead) {
      i = nodes[i].end;
      continue;
    }
    for (int32_t id = nodes[i].token; id >= 0; id = vocabulary_->same_[static_cast<size_t>(id)])
      allow(id);
    path.push_back(next);
    ++i;
  }
  states_[static_cast<size_t>(state)]->mask = std::move(mask);
}

void GrammarMatcher::accept(text::TokenId token) {
  const auto& ends = vocabulary_->end_tokens_;
  const bool is_end = std::find(ends.begin(), ends.end(), token) != ends.end();
  int32_t state = at_;
  const bool known = token >= 0 && static_cast<size_t>(token) < vocabulary_->size();
  if (is_end && complete()) {
    ended_ = true;
    return;
  }
  if (!known || is_end || ended_ || vocabulary_->piece(token).empty()) state = kDead;
  for (size_t i = 0; state != kDead && i < vocabulary_->piece(token).size(); ++i)
    state = next_state(state, static_cast<uint8_t>(vocabulary_->piece(token)[i]));
  if (state == kDead)
    fail("llm.grammar", "token {} is not what the grammar allows here; draw with allowed()", token);
  at_ = state;
  // A trial has a state to go back to.
  if (!tried_ && (states_.size() > kMostStates || frames_.size() > kMostFrames)) forget();
}

/// Keeps the state that the answer is in and nothing else.
void GrammarMatcher::forget() {
  std::vector<std::vector<uint32_t>> chains;  // elements from the bottom up
  for (uint32_t stack : states_[static_cast<size_t>(at_)]->stacks) {
    chains.emplace_back();
    for (; stack != kBottom; stack = frames_[stack].below)
      chains.back().push_back(frames_[stack].element);
  }
  frames_.resize(1);
  frame_ids_.clear();
  states_.clear();
  state_ids_.clear();
  std::vector<uint32_t> stacks;
  for (const std::vector<uint32_t>& chain : chains) {
    uint32_t stack = kBottom;
    for (auto element = chain.rbegin(); element != chain.rend(); ++element)
      stack = push(*element, stack);
    stacks.push_back(stack);
  }
  at_ = state_of(std::move(stacks));
}

}  // namespace weft::llm
