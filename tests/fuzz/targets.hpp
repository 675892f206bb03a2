// The fuzz targets that are linked into the replay program; the table is generated from the *_fuzz.cpp files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace redoubt::fuzz {

struct target {
  char const* name;
  int (*run)(std::uint8_t const* data, std::size_t size);
};

std::span<target const> targets();

}  // namespace redoubt::fuzz
