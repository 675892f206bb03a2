#!/usr/bin/env bash
# Installs the Debian packages redoubt is built and tested with, where they are missing.
# Where nothing is missing it does nothing: no network, no root.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: cmake/install-packages.sh [--list] [GROUP]...

Groups (default: build)
  build   compiler, CMake, the libraries redoubt uses, redis-server for examples and tests
  tests   GoogleTest
  clang   clang 16 with its sanitizer runtime, and the formatter
  bench   Google Benchmark, libuv, valgrind

  --list  only print what is missing; status 1 if something is
TEXT
}

# PACKAGE, or PACKAGE=COMMAND where having the command is enough, or PACKAGE|OTHER>=VERSION where a newer release of
# Debian has OTHER instead.
packages_of() {
  case "$1" in
    build)
      echo "g++=g++ cmake=cmake ninja-build=ninja pkg-config=pkg-config libboost1.81-dev|libboost-dev>=1.81" \
        "libhiredis-dev libfmt-dev libspdlog-dev liblua5.1-0-dev libssl-dev libsqlite3-dev redis-server=redis-server"
      ;;
    tests) echo "libgtest-dev libgmock-dev" ;;
    clang) echo "clang-16=clang++-16 libclang-rt-16-dev clang-format-16=clang-format-16" ;;
    bench) echo "libbenchmark-dev libuv1-dev valgrind=valgrind" ;;
    *)
      echo "install-packages: unknown group: $1" >&2
      usage >&2
      exit 2
      ;;
  esac
}

installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]
}

# Sets MISSING to the names of the packages that are not there.
find_missing() {
  MISSING=()
  local group entry package command other version
  for group in "$@"; do
    for entry in $(packages_of "$group"); do
      package=${entry%%[=|]*}
      case "$entry" in
        *"|"*)
          other=${entry#*|}
          version=${other#*>=}
          other=${other%%>=*}
          if installed "$package"; then continue; fi
          if installed "$other" &&
            dpkg --compare-versions "$(dpkg-query -W -f '${Version}' "$other")" ge "$version"; then continue; fi
          MISSING+=("$package|$other")
          ;;
        *=*)
          command=${entry#*=}
          if command -v "$command" >/dev/null || installed "$package"; then continue; fi
          MISSING+=("$package")
          ;;
        *)
          if ! installed "$package"; then MISSING+=("$package"); fi
          ;;
      esac
    done
  done
}

LIST_ONLY=no
GROUPS_WANTED=()
for argument in "$@"; do
  case "$argument" in
    -h | --help) usage && exit 0 ;;
    --list) LIST_ONLY=yes ;;
    *) GROUPS_WANTED+=("$argument") ;;
  esac
done
if [ ${#GROUPS_WANTED[@]} -eq 0 ]; then GROUPS_WANTED=(build); fi
for group in "${GROUPS_WANTED[@]}"; do packages_of "$group" >/dev/null; done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  {
    echo "install-packages: this is not a Debian system, so nothing was installed. redoubt needs what these packages hold:"
    for group in "${GROUPS_WANTED[@]}"; do
      names=""
      for entry in $(packages_of "$group"); do names+=" ${entry%%[=|]*}"; done
      echo "  $group:$names"
    done
    echo "Install them your system's way, then set REDOUBT_SKIP_INSTALL=1 and run the command again."
  } >&2
  exit 1
fi

find_missing "${GROUPS_WANTED[@]}"
if [ ${#MISSING[@]} -eq 0 ]; then exit 0; fi
if [ "$LIST_ONLY" = yes ]; then
  printf '%s\n' "${MISSING[@]%%|*}"
  exit 1
fi

if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null; then
    echo "install-packages: missing: ${MISSING[*]%%|*}; asking sudo for the right to install"
    if [ -t 0 ]; then exec sudo -- bash "$0" "$@"; else exec sudo -n -- bash "$0" "$@"; fi
  fi
  echo "install-packages: missing: ${MISSING[*]%%|*}" >&2
  echo "Installing needs root, and there is no sudo. As root: apt-get install ${MISSING[*]%%|*}" >&2
  exit 1
fi

# Packages must not start their services: nobody asked for a Redis on port 6379. Debian asks this program.
POLICY=/usr/sbin/policy-rc.d
SAVED=$POLICY.before-redoubt
LOG=""
GUARDED=no
clean_up() {
  rm -f "$LOG"
  if [ "$GUARDED" = no ]; then return 0; fi
  rm -f "$POLICY"
  if [ -e "$SAVED" ]; then mv "$SAVED" "$POLICY"; fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
if [ -e "$POLICY" ]; then mv "$POLICY" "$SAVED"; fi
GUARDED=yes
printf '#!/bin/sh\nexit 101\n' >"$POLICY"
chmod 755 "$POLICY"

export DEBIAN_FRONTEND=noninteractive
LOG=$(mktemp)
apt() { apt-get -q -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null >"$LOG" 2>&1; }
echo "install-packages: reading the package lists"
if ! apt update; then
  tail -n 5 "$LOG" >&2
  echo "install-packages: the package lists could not be renewed; going on with the old ones" >&2
fi

CHOSEN=()
for entry in "${MISSING[@]}"; do
  package=${entry%%|*}
  if [ "$entry" != "$package" ] && [ -z "$(apt-cache show "$package" 2>/dev/null)" ]; then package=${entry#*|}; fi
  CHOSEN+=("$package")
done

echo "install-packages: installing ${CHOSEN[*]}"
if ! apt --no-install-recommends -o Dpkg::Options::=--force-confold install "${CHOSEN[@]}"; then
  tail -n 40 "$LOG" >&2
  echo "install-packages: apt-get could not install: ${CHOSEN[*]}" >&2
  exit 1
fi

case " ${CHOSEN[*]} " in
  *" redis-server "*)
    # The examples and tests start servers of their own; the system's one stays off, at the next boot too.
    if command -v systemctl >/dev/null; then systemctl disable redis-server >/dev/null 2>&1 || true; fi
    echo "install-packages: redis-server was installed without starting its service"
    ;;
esac
