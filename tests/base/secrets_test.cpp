// Command lines that are written down have no secrets in them.
#include "weft/base/secrets.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using Words = std::vector<std::string>;

TEST(Secrets, ValuesOfOptionsAreHidden) {
  const std::pair<Words, Words> cases[] = {
      {{"weft", "llm", "serve", "--api-key", "S3", "m.gguf"},
       {"weft", "llm", "serve", "--api-key", "...", "m.gguf"}},
      {{"weft", "--api-key=S3", "x"}, {"weft", "--api-key=...", "x"}},
      {{"--api-key", "-S3"}, {"--api-key", "..."}},
      {{"--apiKey", "S3"}, {"--apiKey", "..."}},
      {{"-token", "S3"}, {"-token", "..."}},
      {{"--hf_token=S3"}, {"--hf_token=..."}},
      {{"--client-secret", "S3"}, {"--client-secret", "..."}},
      {{"--dbpassword=S3=4"}, {"--dbpassword=..."}},
      {{"env", "OPENAI_API_KEY=S3", "python", "a.py"},
       {"env", "OPENAI_API_KEY=...", "python", "a.py"}},
      {{"curl", "-H", "Authorization: Bearer S3 4"}, {"curl", "-H", "Authorization: Bearer ..."}},
      {{"--proxy", "https://me:S3@host/a"}, {"--proxy", "https://me:...@host/a"}},
      {{"https://me:S3@x@host?a=b"}, {"https://me:...@host?a=b"}},
      {{"--api-key", "S3", "--token", "S4"}, {"--api-key", "...", "--token", "..."}},
      // A flag without a value ends at the next option.
      {{"--auth", "--epochs", "3"}, {"--auth", "--epochs", "3"}},
      {{"--api-key"}, {"--api-key"}},
  };
  for (const auto& [given, expected] : cases) EXPECT_EQ(without_secrets(given), expected);
}

TEST(Secrets, TheRestStaysAsItIs) {
  const Words words = {"python",
                       "train.py",
                       "--max-tokens",
                       "128",
                       "--epochs=3",
                       "--keyboard",
                       "qwerty",
                       "--monkey",
                       "2",
                       "token",
                       "x",
                       "a=b",
                       "",
                       "-",
                       "--",
                       "http://a:8/b",
                       "user@host",
                       "--author",
                       "me",
                       "-k",
                       "5",
                       "--seed=key3",
                       "--passes=a,b",
                       "=key",
                       "http://host/a:b@c"};
  EXPECT_EQ(without_secrets(words), words);
  EXPECT_TRUE(without_secrets({}).empty());
}

}  // namespace
}  // namespace weft
