#!/usr/bin/env bash
# Builds the fuzz targets with libFuzzer and runs each for some seconds, starting from tests/corpus/<target>/.
# usage: tools/fuzz.sh [seconds]
set -eu
seconds=${1:-30}
cd "$(dirname "$0")/.."

has_fuzzer() { echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
  "$1" -fsanitize=fuzzer,address -x c++ - -o /dev/null 2>/dev/null; }

clang=
for candidate in clang++ clang++-{21,20,19,18,17,16,15}; do
  if command -v "$candidate" >/dev/null && has_fuzzer "$candidate"; then
    clang=$candidate
    break
  fi
done
if [ -z "$clang" ]; then
  echo "make fuzz needs clang 15 or newer with libFuzzer (Debian: clang-16 libclang-rt-16-dev)" >&2
  exit 1
fi

cmake --preset fuzz -DCMAKE_CXX_COMPILER="$clang"
cmake --build --preset fuzz
found=0
for source in $(find src -name 'fuzz_*.cc' | sort); do
  target=$(basename "$source" .cc)
  found=1
  # New inputs go to build/, so that a run leaves the committed corpus alone.
  mkdir -p "build/fuzz/corpus/$target"
  echo "== $target, $seconds s"
  "build/fuzz/src/$target" -max_total_time="$seconds" -print_final_stats=1 -rss_limit_mb=2048 -timeout=10 \
    -artifact_prefix="build/fuzz/crash-$target-" "build/fuzz/corpus/$target" "tests/corpus/$target"
done
[ "$found" = 1 ] || { echo "there is no src/**/fuzz_*.cc" >&2; exit 1; }
