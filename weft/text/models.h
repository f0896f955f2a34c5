// The models that turn words into tokens. Methods: BPE, Sennrich et al. 2016 (arXiv 1508.07909);
// WordPiece, Schuster and Nakajima 2012, as BERT finds the longest; Unigram, Kudo 2018
// (1804.10959).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/text/parts.h"
#include "weft/text/vocabulary.h"

namespace weft::text {

struct Merge {
  TokenId left, right, merged;
  uint32_t rank;  // lower ones first; equal ones from left to right
};

struct BpeOptions {
  std::string unknown;  // empty: characters without a token are left out
  std::string continuing_prefix, end_suffix;
  bool fuse_unknown = false, byte_fallback = false, ignore_merges = false;
};
/// A merge of a pair that has one already replaces it. Errors ("tokenizer.model"): `unknown` is no
/// token.
std::unique_ptr<Model> bpe_model(Vocabulary vocabulary, const std::vector<Merge>& merges,
                                 BpeOptions options);

std::unique_ptr<Model> word_piece_model(Vocabulary vocabulary, const std::string& unknown,
                                        std::string continuing_prefix, size_t longest_word);
/// The best segmentation by the sum of the pieces' scores; `unknown` < 0: there is none. Piece i of
/// `scores` is token i.
std::unique_ptr<Model> unigram_model(Vocabulary vocabulary, std::vector<double> scores,
                                     TokenId unknown, bool byte_fallback);
std::unique_ptr<Model> word_level_model(Vocabulary vocabulary, const std::string& unknown);

/// "<0x0A>", as models with byte fallback call a byte.
std::string byte_token(uint8_t byte);

}  // namespace weft::text
