// A chunk of codes as blocks of 32, each as the bit planes that its largest code needs.
//
//   | a bit per block: not all zero | widths - 1 of those that are not | their planes, lowest bit first |
//
// A plane is a 32-bit word, bit i of which is from code i.
#pragma once

#include "lines.h"

namespace laconic::LACONIC_ISA_NAMESPACE {

// The lowest `count` planes of 32 bytes, 4 bytes each.
template <int count>
inline void planes_of_bytes(const std::uint8_t* bytes, std::uint8_t* planes) {
    std::uint32_t words[count];
#if defined(__AVX2__)
    __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
    if constexpr (count < 8) v = _mm256_slli_epi16(v, 8 - count);
    for (int bit = count - 1; bit >= 0; --bit) {
        words[bit] = static_cast<std::uint32_t>(_mm256_movemask_epi8(v));
        v = _mm256_add_epi8(v, v);
    }
#elif defined(__x86_64__)
    __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
    __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16));
    if constexpr (count < 8) {
        low = _mm_slli_epi16(low, 8 - count);
        high = _mm_slli_epi16(high, 8 - count);
    }
    for (int bit = count - 1; bit >= 0; --bit) {
        words[bit] = static_cast<std::uint32_t>(_mm_movemask_epi8(low)) |
                     static_cast<std::uint32_t>(_mm_movemask_epi8(high)) << 16;
        low = _mm_add_epi8(low, low);
        high = _mm_add_epi8(high, high);
    }
#else
    for (int bit = 0; bit < count; ++bit) {
        words[bit] = 0;
        for (int i = 0; i < 32; ++i) words[bit] |= static_cast<std::uint32_t>(bytes[i] >> bit & 1) << i;
    }
#endif
    __builtin_memcpy(planes, words, sizeof words);
}

// The way back, from `count` planes at any address.
inline void bytes_of_planes(const std::uint8_t* planes, int count, std::uint8_t* bytes) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    __m256i v = _mm256_setzero_si256();
    for (int bit = 0; bit < count; ++bit) {
        std::uint32_t plane;
        __builtin_memcpy(&plane, planes + 4 * bit, 4);
        v = _mm256_mask_add_epi8(v, plane, v, _mm256_set1_epi8(static_cast<char>(1 << bit)));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(bytes), v);
#elif defined(__AVX2__)
    const __m256i spread = _mm256_setr_epi64x(0x0000000000000000, 0x0101010101010101, 0x0202020202020202,
                                              0x0303030303030303);
    const __m256i own_bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ull));
    __m256i v = _mm256_setzero_si256();
    for (int bit = 0; bit < count; ++bit) {
        std::int32_t plane;
        __builtin_memcpy(&plane, planes + 4 * bit, 4);
        const __m256i mine = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(plane), spread), own_bit);
        const __m256i set = _mm256_cmpeq_epi8(mine, own_bit);
        v = _mm256_or_si256(v, _mm256_and_si256(set, _mm256_set1_epi8(static_cast<char>(1 << bit))));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(bytes), v);
#else
    for (int group = 0; group < 4; ++group) {
        std::uint64_t all = 0;
        for (int bit = 0; bit < count; ++bit) {
            // Eight bits, each to the lowest bit of a byte of its own.
            const std::uint64_t own = planes[4 * bit + group] * 0x0101010101010101ull & 0x8040201008040201ull;
            all |= ((own + 0x7f7f7f7f7f7f7f7full | own) >> 7 & 0x0101010101010101ull) << bit;
        }
        __builtin_memcpy(bytes + 8 * group, &all, 8);
    }
#endif
}

// All of 32 bytes, or'ed.
inline std::uint32_t or_of_bytes(const std::uint8_t* bytes) {
    std::uint64_t words[4];
    __builtin_memcpy(words, bytes, 32);
    std::uint64_t all = (words[0] | words[1]) | (words[2] | words[3]);
    all |= all >> 32;
    all |= all >> 16;
    return static_cast<std::uint32_t>((all | all >> 8) & 0xff);
}

inline int bits_of(std::uint32_t value) { return value == 0 ? 0 : 32 - __builtin_clz(value); }

// The bits that the largest of 32 codes needs.
template <class U>
inline int width_of(const U* codes) {
    if constexpr (sizeof(U) == 1) return bits_of(or_of_bytes(codes));
    U all = 0;
    for (int i = 0; i < kBlockCodes; ++i) all |= codes[i];
    return bits_of(all);
}

// The planes of 32 codes of such a width, and some after them that the next block's overwrite.
template <class U>
inline void write_planes(const U* codes, int width, std::uint8_t* planes) {
    if constexpr (sizeof(U) == 1) {
        width <= 4 ? planes_of_bytes<4>(codes, planes) : planes_of_bytes<8>(codes, planes);
    } else {
        std::uint8_t bytes[kBlockCodes];
        for (int low = 0; low < width; low += 8) {
            for (int i = 0; i < kBlockCodes; ++i) bytes[i] = static_cast<std::uint8_t>(codes[i] >> low);
            planes_of_bytes<8>(bytes, planes + 4 * low);
        }
    }
}

template <class U>
inline void codes_of_planes(const std::uint8_t* planes, int width, U* codes) {
    if constexpr (sizeof(U) == 1) {
        bytes_of_planes(planes, width, codes);
    } else {
        for (int i = 0; i < kBlockCodes; ++i) codes[i] = 0;
        std::uint8_t bytes[kBlockCodes];
        for (int low = 0; low < width; low += 8) {
            bytes_of_planes(planes + 4 * low, smaller(8, width - low), bytes);
            for (int i = 0; i < kBlockCodes; ++i) codes[i] |= static_cast<U>(static_cast<U>(bytes[i]) << low);
        }
    }
}

// `codes` go on to a whole block with zeros. Gives the chunk's length.
template <class U>
std::int64_t pack_chunk(const U* codes, int count, std::uint8_t* out) {
    constexpr int most = kChunkCodes / kBlockCodes;
    const int blocks = (count + kBlockCodes - 1) / kBlockCodes, flag_bytes = (blocks + 7) / 8;
    std::uint8_t widths[most + 8], filled[most + 8];  // of all blocks; which are not all zero
    int kept = 0;
    __builtin_memset(widths + blocks, 0, 8);
    for (int block = 0; block < blocks; ++block) {
        widths[block] = static_cast<std::uint8_t>(width_of(codes + block * kBlockCodes));
        filled[kept] = static_cast<std::uint8_t>(block);
        kept += widths[block] != 0;
    }
    for (int i = 0; i < flag_bytes; ++i) {
        std::uint8_t flags = 0;
        for (int bit = 0; bit < 8; ++bit) flags |= static_cast<std::uint8_t>((widths[8 * i + bit] != 0) << bit);
        out[i] = flags;
    }
    std::uint8_t* at = out + flag_bytes;
    constexpr int per_byte = sizeof(U) == 4 ? 1 : 2;
    for (int i = 0; i < kept; i += per_byte) {
        int pair = widths[filled[i]] - 1;
        if (per_byte == 2 && i + 1 < kept) pair |= (widths[filled[i + 1]] - 1) << 4;
        *at++ = static_cast<std::uint8_t>(pair);
    }
    for (int i = 0; i < kept; ++i) {
        const int width = widths[filled[i]];
        write_planes(codes + filled[i] * kBlockCodes, width, at);
        at += 4 * width;
    }
    return at - out;
}

// False unless the bytes are just what such a chunk has. Nothing is read beyond `size`.
template <class U>
bool unpack_chunk(const std::uint8_t* data, std::int64_t size, int count, U* codes) {
    const int blocks = (count + kBlockCodes - 1) / kBlockCodes, flag_bytes = (blocks + 7) / 8;
    if (size < flag_bytes || (blocks % 8 != 0 && data[flag_bytes - 1] >> blocks % 8 != 0)) return false;
    int filled = 0;
    for (int i = 0; i < flag_bytes; ++i) filled += __builtin_popcount(data[i]);
    const std::uint8_t* widths = data + flag_bytes;
    std::int64_t at = flag_bytes + (sizeof(U) == 4 ? filled : (filled + 1) / 2);
    if (size < at) return false;
    int next = 0;
    for (int block = 0; block < blocks; ++block) {
        int width = 0;
        if (data[block / 8] >> block % 8 & 1) {
            width = 1 + (sizeof(U) == 4 ? widths[next] : widths[next / 2] >> next % 2 * 4 & 15);
            ++next;
        }
        if (width > 8 * static_cast<int>(sizeof(U)) || size - at < 4 * width) return false;
        codes_of_planes(data + at, width, codes + block * kBlockCodes);
        at += 4 * width;
    }
    return at == size;
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
