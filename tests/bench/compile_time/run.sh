#!/usr/bin/env bash
# How long a file with one call takes to compile, next to one with a coroutine over Asio alone: medians of interleaved
# compilations, processor time of the compiler.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
INCLUDE=$HERE/../../../include
CXX=${CXX:-g++}
ROUNDS=${1:-5}
SCRATCH=$(mktemp -d)
trap 'rm -rf "$SCRATCH"' EXIT

# seconds FILE: user and system time of one compilation.
seconds() {
  local TIMEFORMAT='%U %S'
  { time "$CXX" -std=c++20 -O2 -DBOOST_ASIO_NO_DEPRECATED -I "$INCLUDE" -c "$HERE/$1.cpp" -o "$SCRATCH/$1.o" 2>&3; } \
    3>&2 2>&1 | awk '{ printf "%.3f\n", $1 + $2 }'
}
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

for ((round = 0; round < ROUNDS; ++round)); do
  for file in asio redoubt; do seconds $file >>"$SCRATCH/$file"; done
done
asio=$(median "$SCRATCH/asio")
redoubt=$(median "$SCRATCH/redoubt")
"$CXX" --version | head -n 1
awk -v a="$asio" -v r="$redoubt" -v n="$ROUNDS" 'BEGIN {
  printf "-O2, %d rounds, medians: a coroutine over Asio %.2f s, with one call of redoubt::client %.2f s: %.2f times\n", n, a, r, r / a }'
