#!/usr/bin/env bash
# Builds the throughput measurement optimised and runs it: about two minutes. Installs what is missing first.
set -euo pipefail
CALLED_FROM=$PWD
cd "$(dirname "$0")/../.."
. cmake/build.sh

usage() {
  cat <<'TEXT'
Usage: tests/bench/run.sh [OPTION]...

Measures this library next to hiredis and prints two tables: server and clients on a CPU each, and all on one CPU with
few commands in flight. Every reply is checked.

  --peers       next to Boost.Redis and redis-plus-plus as well, where the build has found them
  --all         more tables after these: larger values and batches, a fixed rate, a stopped server, instructions per call,
                compile time and program size; about fifteen minutes in all
  --json FILE   the numbers of the first table; those of others go to FILE with their name before its ending,
                e.g. ".one-cpu"
  --parts       the parts of the client alone (Google Benchmark) instead; further options go to it
  -h, --help    this text

Other options go to the program and replace the tables by one, e.g. --in-flight 512 --pin none; --help-program lists
them. The build is kept in .build/release. REDOUBT_SKIP_INSTALL=1 never installs packages.
TEXT
}

JSON=""
PARTS=no
ALL=no
PEERS=()
OPTIONS=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage && exit 0 ;;
    --help-program) OPTIONS=(--help) ;;
    --parts) PARTS=yes ;;
    --all) ALL=yes ;;
    --peers) PEERS=(--peers all) ;;
    --json)
      [ $# -ge 2 ] || fail "--json needs a file"
      JSON=$2
      shift
      ;;
    *) OPTIONS+=("$1") ;;
  esac
  shift
done

install_packages build bench
configure release -DREDOUBT_BUILD_BENCH=ON -DREDOUBT_BUILD_EXAMPLES=ON
TARGETS=(redoubt_throughput)
if [ "$PARTS" = yes ]; then TARGETS=(redoubt_bench); fi
if [ "$ALL" = yes ]; then
  TARGETS+=(redoubt_throughput_without_wheel redoubt_open_loop redoubt_paused redoubt_instructions redoubt_example_quickstart)
fi
say "Building ${TARGETS[*]} (the first time takes some minutes)"
build release "${TARGETS[@]}"
REPOSITORY=$PWD
BUILD=$PWD/.build/release
PROGRAM=$BUILD/tests/bench/redoubt_throughput
cd "$CALLED_FROM" # a relative path in the arguments means what its writer sees

if [ "$PARTS" = yes ]; then exec "$BUILD/tests/bench/redoubt_bench" "${OPTIONS[@]}"; fi
if [ ${#OPTIONS[@]} -gt 0 ]; then
  if [ -n "$JSON" ]; then OPTIONS+=(--json "$JSON"); fi
  exec "$PROGRAM" "${PEERS[@]}" "${OPTIONS[@]}"
fi

# table TEXT NAME PROGRAM ARGUMENTS...: runs it; its numbers go to FILE, with NAME unless that is empty.
table() {
  local name=$2 more=()
  say "$1"
  if [ -n "$JSON" ]; then
    case "${JSON##*/}" in
      *.*) more=(--json "${JSON%.*}${name:+.$name}.${JSON##*.}") ;;
      *) more=(--json "$JSON${name:+.$name}") ;;
    esac
  fi
  "${@:3}" "${more[@]}"
}

table "Server and clients on a CPU each" "" "$PROGRAM" "${PEERS[@]}"
table "Server and clients on one CPU" one-cpu "$PROGRAM" "${PEERS[@]}" --pin one --in-flight 1,8
if [ "$ALL" = no ]; then exit 0; fi
table "Values of 10 KB" 10k "$PROGRAM" --loads get-10k,set-10k --in-flight 1,8,64
table "Values of 1 MB" 1m "$PROGRAM" --loads get-1m,set-1m --in-flight 1,8
table "Arrays of 1000 elements, pipelines of 100 commands" many "$PROGRAM" --loads list-1000,batch-100 --in-flight 1,8
table "At a fixed rate" open-loop "$BUILD/tests/bench/redoubt_open_loop"
table "While the server is stopped" paused "$BUILD/tests/bench/redoubt_paused"
say "Without deadlines"
"$REPOSITORY/tests/bench/without_wheel/run.sh" "$BUILD/tests/bench"
say "Instructions per call"
"$REPOSITORY/tests/bench/instructions/run.sh" "$BUILD/tests/bench/redoubt_instructions" || [ $? -eq 77 ]
say "Compile time"
"$REPOSITORY/tests/bench/compile_time/run.sh"
say "Size of quickstart, in bytes"
strip -o "$BUILD/quickstart.stripped" "$BUILD/examples/quickstart"
size "$BUILD/examples/quickstart"
wc -c <"$BUILD/quickstart.stripped"
