#!/usr/bin/env bash
# Sees to a clang++ that has libFuzzer and the sanitizers: on Debian its run time is a package of its own.
set -euo pipefail

can_fuzz() {
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    clang++ -x c++ - -fsanitize=fuzzer,address,undefined -o /dev/null 2>/dev/null
}
install() { apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }

can_fuzz && exit
if command -v apt-get >/dev/null; then
  apt-get update -qq || true
  command -v clang++ >/dev/null || install clang || true
  can_fuzz || install "libclang-rt-$(clang++ -dumpversion | cut -d. -f1)-dev" || true
fi
can_fuzz || { echo "fuzz: clang++ with libFuzzer is neither here nor to be had with apt-get" >&2; exit 1; }
