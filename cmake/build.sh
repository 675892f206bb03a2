# shellcheck shell=bash
# Shared by tests/run.sh, examples/run.sh and .ci/run; sourced, not run. Expects the checkout as the current folder.

say() { printf '\033[1m== %s\033[0m\n' "$*"; }
if [ ! -t 1 ]; then say() { printf '== %s\n' "$*"; }; fi

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

# With ccache, what one checkout has compiled serves the others, wherever they are.
export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$(pwd -P)}" CCACHE_NOHASHDIR="${CCACHE_NOHASHDIR:-1}"

# install_packages GROUP...: see install-packages.sh; REDOUBT_SKIP_INSTALL=1 trusts that all is there.
install_packages() {
  if [ "${REDOUBT_SKIP_INSTALL:-0}" = 1 ]; then return 0; fi
  bash cmake/install-packages.sh "$@" || fail "Some packages are missing and could not be installed; see above."
}

# How many compilers and tests run at a time: REDOUBT_JOBS, or one per core as far as memory allows 1.5 GB each.
jobs() {
  local cores memory
  if [ -n "${REDOUBT_JOBS:-}" ]; then
    echo "$REDOUBT_JOBS"
    return 0
  fi
  cores=$(nproc 2>/dev/null || echo 2)
  memory=$(awk '/^MemAvailable/ { print int($2 / 1572864) }' /proc/meminfo 2>/dev/null || echo "$cores")
  if [ "${memory:-0}" -lt 1 ]; then memory=1; fi
  if [ "$memory" -lt "$cores" ]; then echo "$memory"; else echo "$cores"; fi
}

# configure PRESET [CMAKE ARGUMENT]...: into .build/PRESET. A folder that was made for another place is made anew.
configure() {
  local preset=$1 folder=.build/$1 generator=()
  shift
  [ -f "cmake/presets/$preset.cmake" ] ||
    fail "Unknown preset: $preset. There are: $(cd cmake/presets && echo *.cmake | sed 's/\.cmake//g')"
  if [ -f "$folder/CMakeCache.txt" ] &&
    ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$(pwd -P)" "$folder/CMakeCache.txt"; then
    rm -rf "$folder"
  fi
  if [ ! -f "$folder/CMakeCache.txt" ]; then
    if command -v ninja >/dev/null; then generator=(-G Ninja); else generator=(-G "Unix Makefiles"); fi
  fi
  mkdir -p "$folder"
  if ! cmake "${generator[@]}" -C "cmake/presets/$preset.cmake" -S . -B "$folder" "$@" >"$folder/configure.log" 2>&1; then
    cat "$folder/configure.log" >&2
    fail "The $preset build could not be configured."
  fi
  grep '^-- redoubt: ' "$folder/configure.log" || true # what is left out, and why
}

# build PRESET TARGET...: quiet unless it fails or somebody is watching.
build() {
  local preset=$1 folder=.build/$1
  shift
  if [ -t 1 ]; then
    cmake --build "$folder" -j "$(jobs)" --target "$@" || fail "The $preset build failed."
  elif ! cmake --build "$folder" -j "$(jobs)" --target "$@" >"$folder/build.log" 2>&1; then
    grep -vE '^\[[0-9]+/[0-9]+\] ' "$folder/build.log" | tail -n 200 >&2 || true
    fail "The $preset build failed; the whole log is $folder/build.log"
  fi
}
