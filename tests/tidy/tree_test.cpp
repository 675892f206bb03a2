// The tree as it is keeps the rules of docs/ARCHITECTURE.md, section 2.
#include "tree_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
fs::path const checkout{REDOUBT_SOURCE_DIR};

std::vector<tidy::source_file> read_tree() {
  std::vector<tidy::source_file> files;
  for (char const* folder : {"include", "src", "tests", "examples", "cmake"}) {
    if (!fs::is_directory(checkout / folder)) continue;
    for (auto at = fs::recursive_directory_iterator{checkout / folder};
         at != fs::recursive_directory_iterator{}; ++at) {
      std::string const name = at->path().filename().string();
      if (at->is_directory()) {
        if (name == "corpus" || name.starts_with("."))
          at.disable_recursion_pending();  // fuzzing inputs are bytes
        continue;
      }
      if (name.starts_with(".")) continue;
      std::ifstream in{at->path(), std::ios::binary};
      files.push_back({fs::relative(at->path(), checkout).generic_string(),
                       std::string{std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}}});
    }
  }
  std::sort(files.begin(), files.end(), [](auto const& a, auto const& b) { return a.path < b.path; });
  return files;
}

std::vector<tidy::source_file> const& tree() {
  static std::vector<tidy::source_file> const files = read_tree();
  return files;
}

void report(tidy::breaches const& found) {
  for (auto const& breach : found) ADD_FAILURE() << breach;
}

TEST(tree, was_read) { EXPECT_GT(tree().size(), 20U); }

TEST(tree, obeys_the_include_table) {
  for (auto const& file : tree()) report(tidy::check_includes(file));
}

TEST(tree, includes_hiredis_in_one_file) { report(tidy::check_single_hiredis(tree())); }

TEST(tree, has_no_long_file) {
  for (auto const& file : tree()) report(tidy::check_length(file));
}

TEST(tree, reads_clocks_sleeps_and_starts_threads_only_where_allowed) {
  for (auto const& file : tree()) report(tidy::check_banned_calls(file));
}

TEST(tree, has_no_leftovers) {
  for (auto const& file : tree()) report(tidy::check_leftovers(file));
}

TEST(tree, explains_each_public_header) {
  for (auto const& file : tree()) report(tidy::check_header_comment(file));
}

TEST(tree, has_the_agreed_top_level) {
  std::vector<std::string> names;
  for (auto const& entry : fs::directory_iterator{checkout}) {
    bool const is_build_folder = fs::exists(entry.path() / "CMakeCache.txt");
    if (!is_build_folder && entry.path().filename() != "compile_commands.json") {
      names.push_back(entry.path().filename().string());
    }
  }
  report(tidy::check_top_level(names));
}

}  // namespace
