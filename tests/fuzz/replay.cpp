// Runs every fuzz target over its corpus, and over damaged copies of it, with any compiler: what a search
// once found stays found. An input that breaks a rule ends the program, so a plain return is the whole
// verdict.
#include "targets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace {

using bytes = std::vector<std::uint8_t>;

std::vector<bytes> corpus_of(std::string const& name) {
  std::vector<std::filesystem::path> files;
  std::filesystem::path const folder = std::filesystem::path{REDOUBT_FUZZ_CORPUS} / name;
  if (std::filesystem::is_directory(folder)) {
    for (auto const& entry : std::filesystem::directory_iterator{folder}) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<bytes> inputs{bytes{}};
  for (auto const& file : files) {
    std::ifstream in{file, std::ios::binary};
    inputs.emplace_back(std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{});
  }
  return inputs;
}

class replay : public testing::TestWithParam<redoubt::fuzz::target> {};

TEST_P(replay, corpus_holds) {
  for (bytes const& input : corpus_of(GetParam().name)) GetParam().run(input.data(), input.size());
}

TEST_P(replay, damaged_corpus_holds) {
  std::mt19937 random{20240501};
  for (bytes const& input : corpus_of(GetParam().name)) {
    for (int round = 0; round != 50; ++round) {
      bytes copy = input;
      for (std::uint32_t edits = 1 + random() % 4; edits != 0; --edits) {
        auto const at = copy.empty() ? 0 : static_cast<std::ptrdiff_t>(random() % copy.size());
        switch (random() % 3) {
          case 0: copy.insert(copy.begin() + at, static_cast<std::uint8_t>(random())); break;
          case 1:
            if (!copy.empty()) copy[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(random());
            break;
          default:
            if (!copy.empty()) copy.erase(copy.begin() + at);
            break;
        }
      }
      GetParam().run(copy.data(), copy.size());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(fuzz, replay,
                         testing::ValuesIn(redoubt::fuzz::targets().begin(), redoubt::fuzz::targets().end()),
                         [](auto const& one) { return std::string{one.param.name}; });

}  // namespace
