#!/usr/bin/env bash
# Builds an example and runs it: installs what is missing, compiles in .build/release, passes the example's status on.
set -euo pipefail
CALLED_FROM=$PWD
cd "$(dirname "$0")/.."
. cmake/build.sh

names() {
  local file
  for file in examples/*.cpp examples/*/main.cpp; do
    [ -f "$file" ] || continue
    file=${file#examples/}
    file=${file%/main.cpp}
    echo "${file%.cpp}"
  done | sort
}

usage() {
  cat <<TEXT
Usage: examples/run.sh [NAME] [ARGUMENT]...

Builds the example NAME (default: outage) and runs it with the arguments. There are:
$(names | sed 's/^/  /')

The first run compiles for some minutes; the build is kept in .build/release. REDOUBT_SKIP_INSTALL=1 never installs
packages.
TEXT
}

case "${1:-}" in -h | --help) usage && exit 0 ;; esac

NAME=outage
case "${1:-}" in
  "" | -*) ;; # arguments for the default example
  *)
    NAME=$1
    shift
    ;;
esac
case " $(names | tr '\n' ' ') " in
  *" $NAME "*) ;;
  *)
    echo "There is no example $NAME." >&2
    usage >&2
    exit 2
    ;;
esac

install_packages build
configure release -DREDOUBT_BUILD_EXAMPLES=ON -DREDOUBT_BUILD_TESTS=OFF
say "Building the example $NAME (the first time takes some minutes)"
build release "redoubt_example_$NAME"
PROGRAM=$PWD/.build/release/examples/$NAME
cd "$CALLED_FROM" # a relative path in the arguments means what its writer sees
exec "$PROGRAM" "$@"
