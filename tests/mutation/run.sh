#!/usr/bin/env bash
# Injects bugs, one at a time, and demands that a test catches each of them.
#
#   tests/mutation/run.sh [NAME]...    all mutations, or those named (without .mutation)
#   tests/mutation/run.sh --list       what there is
#   tests/mutation/run.sh --minutes N [NAME]...    begins none after N minutes; each commit begins with another one
#
# A mutation is a file mutations/NAME.mutation:
#
#   What is wrong, in one line.
#   file: src/fsm/call_queue.cpp
#   tests: fsm call_queue*
#   <<<<
#   the old text, which occurs exactly once in that file; it may be a part of a line
#   ====
#   the new text
#   >>>>
#
# `tests` names a program (fsm, unit or policy, see CMakeLists.txt) and a GoogleTest filter; there may be several such lines, tried
# in order until one fails. There may be several blocks of old and new text, too.
#
# Everything happens in a copy of the tree, .build/mutation/tree, which is kept: the next run compiles only what changed,
# and with ccache not even a mutation that was compiled before.
# Exit status 0 when the tests pass without a mutation and fail with each of them.
set -euo pipefail
cd "$(dirname "$0")/../.."
. cmake/build.sh

FOLDER=$PWD/.build/mutation
MUTATIONS=$PWD/tests/mutation/mutations
TREE=$FOLDER/tree
BUILD=$FOLDER/build
LIMIT=120 # seconds for one program; a mutant that hangs is caught

if [ "${1:-}" = --list ]; then
  for m in "$MUTATIONS"/*.mutation; do printf '%-34s %s\n' "$(basename "$m" .mutation)" "$(head -n 1 "$m")"; done
  exit 0
fi
MINUTES=0
if [ "${1:-}" = --minutes ]; then
  [[ "${2:-}" =~ ^[1-9][0-9]*$ ]] || fail "--minutes needs a number of at least 1"
  MINUTES=$2
  shift 2
fi
NAMES=("$@")
if [ ${#NAMES[@]} -eq 0 ]; then
  for m in "$MUTATIONS"/*.mutation; do NAMES+=("$(basename "$m" .mutation)"); done
fi
for name in "${NAMES[@]}"; do [ -f "$MUTATIONS/$name.mutation" ] || fail "Unknown mutation: $name"; done
install_packages build tests

# copy FILE: from the checkout into the tree, but only when it differs, so that only what changed is compiled.
copy() {
  mkdir -p "$(dirname "$TREE/$1")"
  cmp -s "$1" "$TREE/$1" || cp "$1" "$TREE/$1"
}

# mutate SPEC: changes the file in the tree; refuses a text that is not there exactly once.
mutate() {
  perl -0777 -e '
    my ($spec, $tree) = @ARGV;
    open(my $in, "<", $spec) or die "$spec: $!\n";
    my $text = <$in>;
    my ($file) = $text =~ /^file: (\S+)$/m or die "$spec: no line \"file:\"\n";
    open(my $source, "<", "$tree/$file") or die "$file: $!\n";
    my $code = <$source>;
    my $blocks = 0;
    while ($text =~ /^<<<<\n(.*?)\n?^====\n(.*?)\n?^>>>>$/msg) {
      my ($old, $new) = ($1, $2);
      my $times = () = $code =~ /\Q$old\E/g;
      die "$spec: the old text occurs $times times in $file\n" unless $times == 1;
      $code =~ s/\Q$old\E/$new/;
      ++$blocks;
    }
    die "$spec: no block\n" unless $blocks;
    open(my $out, ">", "$tree/$file") or die "$file: $!\n";
    print $out $code;
  ' "$1" "$TREE"
}

# built PROGRAM: compiles it.
built() { cmake --build "$BUILD" -j "$(jobs)" --target "$1" >"$FOLDER/build.log" 2>&1; }

# passes PROGRAM FILTER: runs it up to the first test that fails; what it said is in test.log.
passes() { timeout "$LIMIT" "$BUILD/$1" --gtest_fail_fast --gtest_filter="$2" >"$FOLDER/test.log" 2>&1; }

# catcher STATUS: the test that failed, or the one that was running when the program ended in another way.
catcher() {
  local name
  name=$(sed -n 's/^\[  FAILED  \] \([^ ,]*\).*/\1/p' "$FOLDER/test.log" | head -n 1)
  if [ -n "$name" ]; then echo "$name" && return 0; fi
  name=$(sed -n 's/^\[ RUN      \] //p' "$FOLDER/test.log" | tail -n 1)
  if [ "$1" -eq 124 ]; then echo "$name (hangs)"; else echo "$name (status $1)"; fi
}

say "Copying the tree"
mkdir -p "$TREE"
wanted=$(git ls-files -co --exclude-standard include src cmake tests/fsm tests/unit tests/support CMakeLists.txt)
while IFS= read -r file; do
  if [ -f "$file" ]; then copy "$file"; fi
done <<<"$wanted"
# What the checkout no longer has must not be compiled.
(cd "$TREE" && find . -type f | sed 's|^\./||') | while IFS= read -r file; do [ -f "$file" ] || rm -f "$TREE/$file"; done

say "Building without a mutation"
if [ -f "$BUILD/CMakeCache.txt" ] &&
  ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$(pwd -P)/tests/mutation" "$BUILD/CMakeCache.txt"; then
  rm -rf "$BUILD" # it was made for another place
fi
generator=()
if command -v ninja >/dev/null && [ ! -f "$BUILD/CMakeCache.txt" ]; then generator=(-G Ninja); fi
cmake "${generator[@]}" -S tests/mutation -B "$BUILD" -DTREE="$TREE" >"$FOLDER/configure.log" 2>&1 ||
  { cat "$FOLDER/configure.log" >&2 && fail "The build could not be configured."; }
programs=$(for name in "${NAMES[@]}"; do sed -n 's/^tests: \([a-z]*\) .*/\1/p' "$MUTATIONS/$name.mutation"; done | sort -u)
for program in $programs; do
  built "$program" || { tail -n 60 "$FOLDER/build.log" >&2 && fail "The tree does not build."; }
  passes "$program" '*' || { grep -v SKIPPED "$FOLDER/test.log" | tail -n 60 >&2 && fail "The tests fail without any mutation."; }
  echo "$program: $(grep -o '[0-9]* tests* from' "$FOLDER/test.log" | head -n 1 | sed 's/ from//') pass"
done

survivors=()
broken=()
all=${#NAMES[@]}
if [ "$MINUTES" -gt 0 ]; then
  first=$((16#$(git rev-parse --short=7 HEAD | cut -c1-7) % all))
  NAMES=("${NAMES[@]:first}" "${NAMES[@]:0:first}")
fi
say "Trying $all mutations"
trying=$SECONDS
tried=0
for name in "${NAMES[@]}"; do
  spec=$MUTATIONS/$name.mutation
  file=$(sed -n 's/^file: //p' "$spec")
  begun=$SECONDS
  verdict=""
  if [ "$MINUTES" -gt 0 ] && [ $((begun - trying)) -ge $((MINUTES * 60)) ]; then break; fi
  tried=$((tried + 1))
  if ! mutate "$spec"; then
    broken+=("$name")
    continue
  fi
  while read -r program filter; do
    if ! built "$program"; then
      grep -v '^\[' "$FOLDER/build.log" | tail -n 20 >&2
      verdict=broken
      break
    fi
    status=0
    passes "$program" "$filter" || status=$?
    if [ "$status" -ne 0 ]; then
      verdict="$program.$(catcher "$status")"
      break
    fi
  done < <(sed -n 's/^tests: //p' "$spec")
  copy "$file"
  if [ "$verdict" = broken ]; then
    broken+=("$name")
  elif [ -n "$verdict" ]; then
    printf '%-34s caught    %3d s  %s\n' "$name" $((SECONDS - begun)) "$verdict"
  else
    printf '%-34s SURVIVES  %3d s\n' "$name" $((SECONDS - begun))
    survivors+=("$name")
  fi
done

echo
echo "$((tried - ${#survivors[@]} - ${#broken[@]})) of $tried mutations are caught ($SECONDS s)."
if [ "$tried" -lt "$all" ]; then echo "$((all - tried)) were left for another run: their time was up."; fi
if [ ${#broken[@]} -gt 0 ]; then printf 'Does not fit the code any more, see above: %s\n' "${broken[@]}" >&2; fi
for name in "${survivors[@]}"; do printf 'No test notices: %s: %s\n' "$name" "$(head -n 1 "$MUTATIONS/$name.mutation")" >&2; done
[ $((${#survivors[@]} + ${#broken[@]})) -eq 0 ]
