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

  --json FILE   the numbers of the first table; those of the second go to FILE with ".one-cpu" before its ending
  --parts       the parts of the client alone (Google Benchmark) instead; further options go to it
  -h, --help    this text

Other options go to the program and replace both tables by one, e.g. --in-flight 512 --pin none; --help-program lists
them. The build is kept in .build/release. REDOUBT_SKIP_INSTALL=1 never installs packages.
TEXT
}

JSON=""
PARTS=no
OPTIONS=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage && exit 0 ;;
    --help-program) OPTIONS=(--help) ;;
    --parts) PARTS=yes ;;
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
configure release -DREDOUBT_BUILD_BENCH=ON
PROGRAM=redoubt_throughput
if [ "$PARTS" = yes ]; then PROGRAM=redoubt_bench; fi
say "Building $PROGRAM (the first time takes some minutes)"
build release "$PROGRAM"
PROGRAM=$PWD/.build/release/tests/bench/$PROGRAM
cd "$CALLED_FROM" # a relative path in the arguments means what its writer sees

if [ "$PARTS" = yes ]; then exec "$PROGRAM" "${OPTIONS[@]}"; fi
if [ ${#OPTIONS[@]} -gt 0 ]; then
  if [ -n "$JSON" ]; then OPTIONS+=(--json "$JSON"); fi
  exec "$PROGRAM" "${OPTIONS[@]}"
fi

# with_json FILE: the option, when there is a file.
with_json() { if [ -n "$1" ]; then printf '%s\n' --json "$1"; fi; }
ONE_CPU_JSON=""
if [ -n "$JSON" ]; then
  case "${JSON##*/}" in
    *.*) ONE_CPU_JSON=${JSON%.*}.one-cpu.${JSON##*.} ;;
    *) ONE_CPU_JSON=$JSON.one-cpu ;;
  esac
fi
say "Server and clients on a CPU each"
mapfile -t MORE < <(with_json "$JSON")
"$PROGRAM" "${MORE[@]}"
say "Server and clients on one CPU"
mapfile -t MORE < <(with_json "$ONE_CPU_JSON")
"$PROGRAM" --pin one --in-flight 1,8 "${MORE[@]}"
