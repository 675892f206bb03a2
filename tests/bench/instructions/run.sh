#!/usr/bin/env bash
# Counts the instructions of a call and compares them with tests/bench/instructions/per_call.txt. Status: 0 within 5 %,
# 1 outside, 77 where it cannot be told (then it says why).
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: tests/bench/instructions/run.sh PROGRAM [--update]

PROGRAM is redoubt_instructions of a Release build. --update writes what is counted now into per_call.txt: do that in
the change that is meant to cost (or save) so much, and say why in its message.
TEXT
}

HERE=$(cd "$(dirname "$0")" && pwd)
FILE=$HERE/per_call.txt
CALLS=2000
case "${1:-}" in "" | -h | --help) usage && exit 2 ;; esac
PROGRAM=$1
UPDATE=${2:-}

skip() {
  echo "SKIPPED: $*"
  exit 77
}

command -v valgrind >/dev/null || skip "valgrind is not installed (cmake/install-packages.sh bench)"
TOOLCHAIN=$("$PROGRAM" --toolchain)
if [ "$UPDATE" != --update ] && ! grep -qF "$TOOLCHAIN" "$FILE"; then
  skip "nothing is recorded for $TOOLCHAIN; $HERE/run.sh PROGRAM --update records it"
fi

# count WHAT: instructions per call, rounded.
count() {
  local output collected
  output=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=measured \
    "$PROGRAM" "$1" "$CALLS" 2>&1) || { printf '%s\n' "$output" >&2 && exit 1; }
  collected=$(sed -n 's/.*Collected : \([0-9][0-9]*\).*/\1/p' <<<"$output")
  [ "${collected:-0}" -gt 0 ] || { echo "valgrind counted nothing for $1" >&2 && exit 1; }
  echo $(((collected + CALLS / 2) / CALLS))
}

STATUS=0
NEW=""
for what in get-1 get-64 set-64 rejected; do
  now=$(count "$what") || exit 1
  NEW+="$what $now $TOOLCHAIN"$'\n'
  if [ "$UPDATE" = --update ]; then
    echo "$what: $now instructions per call"
    continue
  fi
  was=$(awk -v what="$what" -v toolchain="$TOOLCHAIN" \
    '$1 == what && index($0, toolchain) { print $2 }' "$FILE")
  if [ -z "$was" ]; then
    echo "$what: $now instructions per call, none recorded for $TOOLCHAIN"
    STATUS=1
    continue
  fi
  difference=$(awk -v now="$now" -v was="$was" 'BEGIN { printf "%+.1f", (now - was) * 100 / was }')
  echo "$what: $now instructions per call, recorded $was ($difference %)"
  if awk -v d="$difference" 'BEGIN { exit !(d > 5 || d < -5) }'; then STATUS=1; fi
done

if [ "$UPDATE" = --update ]; then
  {
    grep -vF "$TOOLCHAIN" "$FILE" || true
    printf '%s' "$NEW"
  } >"$FILE.new"
  mv "$FILE.new" "$FILE"
elif [ $STATUS -ne 0 ]; then
  echo "More than 5 % from what is recorded. Undo what costs, or, when the change is wanted (a saving as well), record it:"
  echo "  $0 $PROGRAM --update"
fi
exit $STATUS
