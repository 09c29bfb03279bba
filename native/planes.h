// A chunk of codes as blocks of 32, each as the bit planes that its largest code needs.
//
//   | a bit per block: not all zero | widths - 1 of those that are not | their planes, lowest bit first |
//
// A plane is a 32-bit word, bit i of which is from code i.
#pragma once

#include "lines.h"

namespace laconic::LACONIC_ISA_NAMESPACE {

// The eight planes of 32 bytes.
inline void planes_of_bytes(const std::uint8_t* bytes, std::uint32_t* planes) {
#if defined(__AVX2__)
    __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
    for (int bit = 7; bit >= 0; --bit) {
        planes[bit] = static_cast<std::uint32_t>(_mm256_movemask_epi8(v));
        v = _mm256_add_epi8(v, v);
    }
#elif defined(__x86_64__)
    __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
    __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16));
    for (int bit = 7; bit >= 0; --bit) {
        planes[bit] = static_cast<std::uint32_t>(_mm_movemask_epi8(low)) |
                      static_cast<std::uint32_t>(_mm_movemask_epi8(high)) << 16;
        low = _mm_add_epi8(low, low);
        high = _mm_add_epi8(high, high);
    }
#else
    for (int bit = 0; bit < 8; ++bit) planes[bit] = 0;
    for (int i = 0; i < 32; ++i) {
        for (int bit = 0; bit < 8; ++bit) planes[bit] |= static_cast<std::uint32_t>(bytes[i] >> bit & 1) << i;
    }
#endif
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

inline int bits_of(std::uint32_t value) { return value == 0 ? 0 : 32 - __builtin_clz(value); }

// All of the planes that 32 codes could have, at `planes`; gives how many they do have.
template <class U>
inline int planes_of(const U* codes, std::uint8_t* planes) {
    std::uint32_t words[8];
    if constexpr (sizeof(U) == 1) {
        planes_of_bytes(codes, words);
        __builtin_memcpy(planes, words, 32);
        std::uint32_t filled = 0;
        for (int bit = 0; bit < 8; ++bit) filled |= (words[bit] != 0 ? 1u : 0u) << bit;
        return bits_of(filled);
    } else {
        U all = 0;
        for (int i = 0; i < kBlockCodes; ++i) all |= codes[i];
        const int width = bits_of(all);
        std::uint8_t bytes[kBlockCodes];
        for (int low = 0; low < width; low += 8) {
            for (int i = 0; i < kBlockCodes; ++i) bytes[i] = static_cast<std::uint8_t>(codes[i] >> low);
            planes_of_bytes(bytes, words);
            __builtin_memcpy(planes + 4 * low, words, 32);
        }
        return width;
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

// `codes` go on to a whole block with zeros. `planes` is scratch. Gives the chunk's length.
template <class U>
std::int64_t pack_chunk(const U* codes, int count, std::uint8_t* planes, std::uint8_t* out) {
    const int blocks = (count + kBlockCodes - 1) / kBlockCodes, flag_bytes = (blocks + 7) / 8;
    std::uint8_t* widths = out + flag_bytes;
    __builtin_memset(out, 0, flag_bytes);
    int filled = 0, at = 0;
    for (int block = 0; block < blocks; ++block) {
        const int width = planes_of(codes + block * kBlockCodes, planes + at);
        at += 4 * width;
        out[block / 8] |= static_cast<std::uint8_t>((width != 0) << block % 8);
        if (width == 0) continue;
        if constexpr (sizeof(U) == 4) {
            widths[filled] = static_cast<std::uint8_t>(width - 1);
        } else if (filled % 2 == 0) {
            widths[filled / 2] = static_cast<std::uint8_t>(width - 1);
        } else {
            widths[filled / 2] |= static_cast<std::uint8_t>((width - 1) << 4);
        }
        ++filled;
    }
    const int header = flag_bytes + (sizeof(U) == 4 ? filled : (filled + 1) / 2);
    __builtin_memcpy(out + header, planes, at);
    return header + at;
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
