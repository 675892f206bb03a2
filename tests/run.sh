#!/usr/bin/env bash
# Builds and runs the tests: installs what is missing, then every tier under g++ with ASan and UBSan.
set -euo pipefail
cd "$(dirname "$0")/.."
. cmake/build.sh

TIERS=(unit fsm sim net redis fuzz package compile_fail tidy bench-smoke examples)

usage() {
  cat <<TEXT
Usage: tests/run.sh [OPTION]... [TIER]...

Tiers (default: all): ${TIERS[*]}

  --filter REGEX   only tests whose name matches, e.g. --filter 'call_queue'
  --preset NAME    another build: $(cd cmake/presets && echo *.cmake | sed 's/\.cmake//g') (default: asan)
  -j N             N compilers and tests at a time
  -h, --help       this text

With --preset release also: instructions    counts them per call and compares (tests/bench/instructions/run.sh)

Usage: tests/run.sh mutation [--minutes N] [NAME]...    injects bugs and demands that a test catches each (tests/mutation/run.sh)

Examples: tests/run.sh fsm    tests/run.sh --filter breaker    tests/run.sh --preset tsan net sim redis
The build is kept in .build/<preset>. REDOUBT_SKIP_INSTALL=1 never installs packages.
TEXT
}

if [ "${1:-}" = mutation ]; then shift && exec tests/mutation/run.sh "$@"; fi # a build of its own

PRESET=asan
FILTER=""
WANTED=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage && exit 0 ;;
    --filter | --preset | -j)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case "$1" in
        --filter) FILTER=$2 ;;
        --preset) PRESET=$2 ;;
        -j) export REDOUBT_JOBS=$2 ;;
      esac
      shift
      ;;
    -*) echo "Unknown option: $1" >&2 && usage >&2 && exit 2 ;;
    all) WANTED=("${TIERS[@]}") ;;
    *)
      case " ${TIERS[*]} instructions " in
        *" $1 "*) WANTED+=("$1") ;;
        *)
          echo "Unknown tier: $1" >&2
          usage >&2
          exit 2
          ;;
      esac
      ;;
  esac
  shift
done
if [ ${#WANTED[@]} -eq 0 ]; then WANTED=("${TIERS[@]}"); fi
wants() { case " ${WANTED[*]} " in *" $1 "*) return 0 ;; *) return 1 ;; esac }

if wants instructions && [ "$PRESET" != release ]; then
  fail "instructions are counted in a Release build only: add --preset release"
fi

GROUPS_WANTED=(build tests)
if wants bench-smoke || wants instructions; then GROUPS_WANTED+=(bench); fi
case "$PRESET" in tsan | clang | fuzz) GROUPS_WANTED+=(clang) ;; esac
install_packages "${GROUPS_WANTED[@]}"

OPTIONS=(-DREDOUBT_BUILD_TESTS=ON)
if wants bench-smoke || wants instructions; then OPTIONS+=(-DREDOUBT_BUILD_BENCH=ON); fi
if wants examples; then OPTIONS+=(-DREDOUBT_BUILD_EXAMPLES=ON); fi
configure "$PRESET" "${OPTIONS[@]}"

TARGETS=()
for tier in "${WANTED[@]}"; do TARGETS+=("redoubt_tier_$tier"); done
say "Building ($PRESET): ${WANTED[*]}"
build "$PRESET" "${TARGETS[@]}"

# The package tests build too.
CMAKE_BUILD_PARALLEL_LEVEL=$(jobs)
export CMAKE_BUILD_PARALLEL_LEVEL

# The first finding of a sanitizer ends the test that caused it.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/tests/support/tsan.supp}

LABELS=$(IFS='|' && echo "^(${WANTED[*]})\$")
ARGUMENTS=(--test-dir ".build/$PRESET" -j "$(jobs)" --output-on-failure --no-tests=error -L "$LABELS")
if [ -n "$FILTER" ]; then ARGUMENTS+=(-R "$FILTER"); fi
say "Testing ($PRESET): ${WANTED[*]}"
exec ctest "${ARGUMENTS[@]}"
