// The rules of the tree as functions over text: each takes a path relative to the checkout and the file's
// content, and gives the breaches it found, one sentence each. Nothing here reads a file, so each rule can be
// fed a bad sample.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidy {

struct source_file {
  std::string path;  // relative to the checkout, with '/'
  std::string text;
};

using breaches = std::vector<std::string>;

/// The layer a path belongs to: a folder of ARCHITECTURE.md section 2, "client" for the files beside those
/// folders, "examples", or empty for everything that the include table does not govern.
std::string layer_of(std::string_view path);

/// The text with comments and the content of string literals blanked; line breaks stay where they are.
std::string code_only(std::string_view text);

/// The include table: who may include whom, and where hiredis, fmt, spdlog and Asio may appear.
breaches check_includes(source_file const& file);

/// hiredis is included by one file of src/resp only; over all files at once.
breaches check_single_hiredis(std::vector<source_file> const& files);

/// No file is longer than 400 lines.
breaches check_length(source_file const& file);

/// Clock reads, sleeps and threads outside the files that may have one; std random distributions anywhere.
breaches check_banned_calls(source_file const& file);

/// Notes to oneself that were left behind.
breaches check_leftovers(source_file const& file);

/// A public header says at its top what it owns.
breaches check_header_comment(source_file const& file);

/// The visible entries of the checkout's top folder.
breaches check_top_level(std::vector<std::string> const& names);

}  // namespace tidy
