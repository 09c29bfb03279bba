#!/usr/bin/env bash
# Builds every native/fuzz/fuzz_*.cpp with clang's libFuzzer, under AddressSanitizer and UndefinedBehaviorSanitizer,
# into build/fuzz/. Kernels are built for each instruction set, as CMakeLists.txt does. What reads no encoded bytes is
# left out: it takes clang longer than the fuzzers run.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v clang++ >/dev/null || { echo "fuzz: clang++ is not here. Try: native/fuzz/install.sh" >&2; exit 1; }
out=$PWD/../build/fuzz
mkdir -p "$out"

flags="-std=c++17 -g -O1 -fno-omit-frame-pointer -ffp-contract=off -Wno-psabi"
flags+=" -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
isas=(baseline)
case $(uname -m) in x86_64 | amd64) isas+=(avx2 avx512) ;; esac
declare -A isa_flags=(
  [baseline]=""
  [avx2]="-mavx2 -mfma -mf16c"
  [avx512]="-mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c"
)

# One command for each object. A kernel mentions its namespace.
commands() {
  for source in *.cpp; do
    name=$(basename "$source" .cpp)
    case $name in module* | block* | extent | grid | survey) continue ;; esac
    if grep -q LACONIC_ISA_NAMESPACE "$source"; then
      for isa in "${isas[@]}"; do
        echo "clang++ $flags ${isa_flags[$isa]} -DLACONIC_ISA_NAMESPACE=$isa -c $source -o '$out/$name.$isa.o'"
      done
    else
      echo "clang++ $flags -c $source -o '$out/$name.o'"
    fi
  done
  for target in fuzz/fuzz_*.cpp; do
    echo "clang++ $flags -c $target -o '$out/$(basename "$target" .cpp).main'"
  done
}
rm -f "$out"/*.o "$out"/*.main
commands | xargs -P "$(nproc)" -d '\n' -n 1 bash -c
for main in "$out"/fuzz_*.main; do
  clang++ -fsanitize=fuzzer,address,undefined -pthread "$main" "$out"/*.o -o "${main%.main}"
done
