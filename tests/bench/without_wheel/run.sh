#!/usr/bin/env bash
# What a deadline on every call costs: the client as it ships and one whose deadline wheel does nothing, in turns.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: tests/bench/without_wheel/run.sh DIRECTORY [ROUNDS]

DIRECTORY holds redoubt_throughput and redoubt_throughput_without_wheel of a Release build. ROUNDS: default 10.
TEXT
}

case "${1:-}" in "" | -h | --help) usage && exit 2 ;; esac
DIRECTORY=$1
ROUNDS=${2:-10}
SCRATCH=$(mktemp -d)
trap 'rm -rf "$SCRATCH"' EXIT

# rates PROGRAM: load, calls in flight and calls per second of each cell.
rates() {
  "$DIRECTORY/$1" --clients redoubt --in-flight 64,512 --rounds 3 | awk '$3 == "redoubt" { print $1, $2, $4 }'
}

for ((round = 0; round < ROUNDS; ++round)); do
  if ((round % 2 == 0)); then order="with without"; else order="without with"; fi
  for which in $order; do
    program=redoubt_throughput
    if [ "$which" = without ]; then program=redoubt_throughput_without_wheel; fi
    rates $program | sed "s/^/$which /" >>"$SCRATCH/all"
  done
done
# The ratio of each round, and of these the median.
awk '{ key = $2 " " $3; n = ++count[$1 " " key]; v[$1, key, n] = $4; if (n > most) most = n; keys[key] }
  END {
    for (key in keys) {
      for (i = 1; i <= most; ++i) r[i] = v["without", key, i] / v["with", key, i]
      for (i = 1; i <= most; ++i) for (j = i + 1; j <= most; ++j) if (r[j] < r[i]) { t = r[i]; r[i] = r[j]; r[j] = t }
      printf "%s in flight: a deadline on every call costs %+.1f %%\n", key, (r[int((most + 1) / 2)] - 1) * 100
    }
  }' "$SCRATCH/all" | sort
