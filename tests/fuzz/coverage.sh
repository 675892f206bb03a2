#!/usr/bin/env bash
# Prints which lines and branches of the reader, the decoder and the URL parser the corpus reaches. Needs clang.
set -euo pipefail
cd "$(dirname "$0")/../.."
. cmake/build.sh

if [ $# -gt 0 ]; then
  echo "Usage: tests/fuzz/coverage.sh    (a Debian with clang-16 and llvm-16; builds in .build/fuzz-coverage)"
  [ "$1" = --help ] && exit 0 || exit 2
fi

# program, corpus and the source that it is meant for
TARGETS=(reader:src/resp/reader.cpp decode:src/resp/decode.cpp url:src/net/url.cpp options:src/net/options.cpp)

install_packages build tests clang
command -v llvm-cov-16 >/dev/null || fail "llvm-cov-16 is missing (Debian: llvm-16)."
configure fuzz-coverage
for target in "${TARGETS[@]}"; do
  name=${target%%:*}
  build fuzz-coverage "${name}_fuzz"
done
for target in "${TARGETS[@]}"; do
  name=${target%%:*}
  program=.build/fuzz-coverage/tests/fuzz/${name}_fuzz
  say "$name: $(find "tests/fuzz/corpus/$name" -type f | wc -l) inputs"
  LLVM_PROFILE_FILE=.build/fuzz-coverage/$name.raw "$program" -runs=0 "tests/fuzz/corpus/$name" 2>/dev/null
  llvm-profdata-16 merge -sparse ".build/fuzz-coverage/$name.raw" -o ".build/fuzz-coverage/$name.profile"
  llvm-cov-16 report "$program" -instr-profile=".build/fuzz-coverage/$name.profile" "${target#*:}"
done
