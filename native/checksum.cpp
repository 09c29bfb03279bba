// By folding: "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Gopal et al., Intel 2009.
// The constants are powers of x modulo the polynomial, bits reflected.
#include "checksum.h"

#if defined(__x86_64__)

#include <immintrin.h>

namespace laconic {
namespace {

#define LACONIC_FOLDS __attribute__((target("pclmul,sse4.1")))

LACONIC_FOLDS inline __m128i at(const std::uint8_t* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

// `sum` so many bytes further on, and what is there.
LACONIC_FOLDS inline __m128i folded(__m128i sum, __m128i powers, __m128i next) {
    const __m128i low = _mm_clmulepi64_si128(sum, powers, 0x00), high = _mm_clmulepi64_si128(sum, powers, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

LACONIC_FOLDS std::uint32_t reduced(__m128i sum, __m128i by_16) {
    const __m128i words = _mm_setr_epi32(~0, 0, ~0, 0);
    sum = _mm_xor_si128(_mm_srli_si128(sum, 8), _mm_clmulepi64_si128(sum, by_16, 0x10));
    const __m128i by_8 = _mm_set_epi64x(0, 0x0163cd6124);
    sum = _mm_xor_si128(_mm_srli_si128(sum, 4), _mm_clmulepi64_si128(_mm_and_si128(sum, words), by_8, 0x00));
    const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(sum, words), barrett, 0x10);
    quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, words), barrett, 0x00);
    return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(sum, quotient), 1));
}

LACONIC_FOLDS std::uint32_t folded_all(const std::uint8_t* data, std::int64_t size, std::uint32_t before) {
    const __m128i by_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
    const __m128i by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    __m128i sums[4];
    for (int i = 0; i < 4; ++i) sums[i] = at(data + 16 * i);
    sums[0] = _mm_xor_si128(sums[0], _mm_cvtsi32_si128(static_cast<int>(~before)));
    std::int64_t done = 64;
    for (; done + 64 <= size; done += 64) {
        for (int i = 0; i < 4; ++i) sums[i] = folded(sums[i], by_64, at(data + done + 16 * i));
    }
    for (int i = 1; i < 4; ++i) sums[0] = folded(sums[0], by_16, sums[i]);
    for (; done + 16 <= size; done += 16) sums[0] = folded(sums[0], by_16, at(data + done));
    return ~reduced(sums[0], by_16);
}

}  // namespace

bool has_checksum() { return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1"); }

std::uint32_t checksum(const std::uint8_t* data, std::int64_t size, std::uint32_t before) {
    return folded_all(data, size, before);
}

}  // namespace laconic

#else

namespace laconic {

bool has_checksum() { return false; }

std::uint32_t checksum(const std::uint8_t*, std::int64_t, std::uint32_t before) { return before; }

}  // namespace laconic

#endif
