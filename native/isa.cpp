#include "isa.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace laconic {
namespace {

Isa best_of_this_cpu() {
#if LACONIC_HAS_AVX
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
        return Isa::avx512;
    }
    // Every CPU with AVX2 has F16C, a name that clang before 15 does not know here.
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return Isa::avx2;
    }
#endif
    return Isa::baseline;
}

Isa limit_from_environment() {
    const char* wanted = std::getenv("LACONIC_ISA");
    if (wanted == nullptr || *wanted == '\0') return Isa::avx512;
    for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
        if (std::string(wanted) == isa_name(isa)) return isa;
    }
    throw std::invalid_argument("LACONIC_ISA: expected baseline, avx2 or avx512, got " +
                                std::string(wanted));
}

}  // namespace

const char* isa_name(Isa isa) {
    switch (isa) {
        case Isa::avx512: return "avx512";
        case Isa::avx2: return "avx2";
        default: return "baseline";
    }
}

Isa chosen_isa() {
    static const Isa chosen = std::min(best_of_this_cpu(), limit_from_environment());
    return chosen;
}

}  // namespace laconic
