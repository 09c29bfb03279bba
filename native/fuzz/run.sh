#!/usr/bin/env bash
# native/fuzz/run.sh SECONDS: builds every fuzzer, and runs each on its corpus and on what it makes of that, on every
# instruction set this machine has. What breaks a decoder is left in build/fuzz/.
set -euo pipefail
seconds=${1:?"usage: native/fuzz/run.sh SECONDS"}
cd "$(dirname "$0")/../.."

native/fuzz/build.sh
mapfile -t targets < <(find build/fuzz -name 'fuzz_*' ! -name '*.main' | sort)
isas=(baseline)
grep -qw avx2 /proc/cpuinfo && isas+=(avx2)
grep -qw avx512dq /proc/cpuinfo && isas+=(avx512)
each=$((seconds / ${#targets[@]} / ${#isas[@]}))
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT

for target in "${targets[@]}"; do
  corpus=tests/corpus/${target##*/fuzz_}
  for isa in "${isas[@]}"; do
    echo "$target on $isa, for ${each} s"
    LACONIC_ISA=$isa "$target" -max_total_time="$((each > 0 ? each : 1))" -timeout=10 -rss_limit_mb=2048 \
      -max_len=8192 -print_final_stats=1 -verbosity=0 -artifact_prefix=build/fuzz/ "$found" "$corpus"
  done
  rm -rf "${found:?}"/*
done
