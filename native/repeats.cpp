// Looking for rows that occur again, and copying rows.
#include "repeats.h"

#include "simd.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

template <class T>
inline T load(const std::uint8_t* from) {
    T value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}

// Both halves of a product: every bit of it depends on all bits of the factors.
inline std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

constexpr std::uint64_t kFirst = 0x9e3779b97f4a7c15, kSecond = 0xd1b54a32d192ed03, kLast = 0xaef17502108ef2d9;

inline std::uint64_t hash_short(const std::uint8_t* row, std::int64_t bytes) {
    std::uint64_t a, b;
    if (bytes >= 8) {
        a = load<std::uint64_t>(row), b = load<std::uint64_t>(row + bytes - 8);
    } else if (bytes >= 4) {
        a = load<std::uint32_t>(row), b = load<std::uint32_t>(row + bytes - 4);
    } else {
        a = row[0] | static_cast<std::uint64_t>(row[bytes / 2]) << 8, b = row[bytes - 1];
    }
    return fold(a ^ kFirst, b ^ kSecond);
}

using Words64 = Vec<std::uint64_t>;
constexpr std::int64_t kWide = sizeof(Words64);

// Of each lane the lower half times the upper one.
inline Words64 multiply_halves(Words64 lanes) {
#if defined(__AVX512F__)
    return (Words64)_mm512_mul_epu32((__m512i)lanes, (__m512i)(lanes >> 32));
#elif defined(__AVX2__)
    return (Words64)_mm256_mul_epu32((__m256i)lanes, (__m256i)(lanes >> 32));
#elif defined(__x86_64__)
    return (Words64)_mm_mul_epu32((__m128i)lanes, (__m128i)(lanes >> 32));
#else
    return (lanes & 0xffffffff) * (lanes >> 32);
#endif
}

inline std::uint64_t sum(Words64 lanes) {
#if defined(__AVX512F__)
    return static_cast<std::uint64_t>(_mm512_reduce_add_epi64((__m512i)lanes));
#else
    std::uint64_t all = 0;
    for (int lane = 0; lane < kLanes<std::uint64_t>; ++lane) all += lanes[lane];
    return all;
#endif
}

inline bool all_zero(Words64 lanes) {
#if defined(__AVX512F__)
    return _mm512_test_epi64_mask((__m512i)lanes, (__m512i)lanes) == 0;
#elif defined(__AVX2__)
    return _mm256_testz_si256((__m256i)lanes, (__m256i)lanes) != 0;
#elif defined(__x86_64__)
    return _mm_movemask_epi8(_mm_cmpeq_epi8((__m128i)lanes, _mm_setzero_si128())) == 0xffff;
#else
    std::uint64_t any = 0;
    for (int lane = 0; lane < kLanes<std::uint64_t>; ++lane) any |= lanes[lane];
    return any == 0;
#endif
}

// A key for each place, so that it matters what stands where.
inline Words64 first_keys() {
    Words64 keys;
    for (int lane = 0; lane < kLanes<std::uint64_t>; ++lane) keys[lane] = kFirst * (2 * lane + 1);
    return keys;
}

// The last bytes may overlap those before.
inline std::uint64_t hash_row(const std::uint8_t* row, std::int64_t bytes) {
    if (bytes < 16) return fold(hash_short(row, bytes), kLast);
    Words64 keys = first_keys(), products{};
    std::int64_t i = 0;
    for (; i + kWide <= bytes; i += kWide, keys += kSecond) {
        products += multiply_halves(load_vector<Words64>(row + i) ^ keys);
    }
    if (i == bytes) return fold(sum(products), kLast);
    if (bytes >= kWide) {
        return fold(sum(products + multiply_halves(load_vector<Words64>(row + bytes - kWide) ^ keys)), kLast);
    }
    std::uint64_t all = 0;
    for (; i + 16 <= bytes; i += 16) all += hash_short(row + i, 16) * (kFirst + static_cast<std::uint64_t>(i));
    return fold(all ^ hash_short(row + bytes - 16, 16), kLast);
}

inline bool equal_rows(const std::uint8_t* a, const std::uint8_t* b, std::int64_t bytes) {
    if (bytes < kWide) return __builtin_memcmp(a, b, bytes) == 0;
    Words64 different = load_vector<Words64>(a + bytes - kWide) ^ load_vector<Words64>(b + bytes - kWide);
    for (std::int64_t i = 0; i + kWide <= bytes; i += kWide) {
        different |= load_vector<Words64>(a + i) ^ load_vector<Words64>(b + i);
    }
    return all_zero(different);
}

template <class T>
inline void copy_value(const std::uint8_t* from, std::uint8_t* to) {
    const T value = load<T>(from);
    __builtin_memcpy(to, &value, sizeof value);
}

// Both ends, which may overlap; everything is read before anything is written.
template <class T>
inline void copy_ends(const std::uint8_t* from, std::int64_t bytes, std::uint8_t* to) {
    const T first = load<T>(from), last = load<T>(from + bytes - sizeof(T));
    __builtin_memcpy(to, &first, sizeof first);
    __builtin_memcpy(to + bytes - sizeof(T), &last, sizeof last);
}

// To lower or far higher addresses.
inline void copy_row(const std::uint8_t* from, std::int64_t bytes, std::uint8_t* to) {
    using V = Vec<std::uint8_t>;
    constexpr std::int64_t step = sizeof(V);
    if (bytes >= step) {
        const V last = load<V>(from + bytes - step);
        for (std::int64_t i = 0; i + step <= bytes; i += step) copy_value<V>(from + i, to + i);
        return store_vector(to + bytes - step, last);
    }
    if constexpr (step > 32) {
        if (bytes >= 32) return copy_ends<Vec<std::uint8_t, 32>>(from, bytes, to);
    }
    if (bytes >= 16) return copy_ends<Vec<std::uint8_t, 16>>(from, bytes, to);
    if (bytes >= 8) return copy_ends<std::uint64_t>(from, bytes, to);
    if (bytes >= 4) return copy_ends<std::uint32_t>(from, bytes, to);
    if (bytes >= 2) return copy_ends<std::uint16_t>(from, bytes, to);
    *to = *from;
}

// Row by row from the first on, so that those just written may be read again. Gives where they end.
template <class Size>
inline std::uint8_t* copy_run(const std::uint8_t* from, std::int64_t rows, Size bytes, std::uint8_t* to) {
    if (from == to) return to + rows * bytes;
    for (; rows > 0; --rows, from += bytes, to += bytes) copy_row(from, bytes, to);
    return to;
}

// Calls body(bytes) with a constant in place of sizes that are frequent.
template <std::int64_t bytes>
struct Constant {
    constexpr operator std::int64_t() const { return bytes; }
};

template <class Body>
inline auto with_size(std::int64_t bytes, Body body) {
    switch (bytes) {
        case 16: return body(Constant<16>{});
        case 32: return body(Constant<32>{});
        case 64: return body(Constant<64>{});
        case 128: return body(Constant<128>{});
        case 256: return body(Constant<256>{});
        default: return body(bytes);
    }
}

}  // namespace

void hash_rows(const Rows& rows, std::int64_t begin, std::int64_t end, std::uint64_t* keys) {
    constexpr std::uintptr_t ahead = 4096;
    with_size(rows.bytes, [&](auto bytes) {
        for (std::int64_t i = begin; i < end; ++i) {
            const std::uint8_t* row = rows.data + i * bytes;
            fetch_line(reinterpret_cast<std::uintptr_t>(row) + ahead);
            keys[i] = hash_row(row, bytes);
        }
    });
}

std::int64_t find_repeats(const Rows& rows, const RowKeys& keys, const Repeats& repeats) {
    constexpr std::int64_t ahead = 16;
    const std::uint64_t slots = slots_for(rows.count), mask = slots - 1;
    const int shift = __builtin_clzll(mask);
    __builtin_memset(keys.slots, 0xff, slots * sizeof *keys.slots);
    return with_size(rows.bytes, [&](auto bytes) -> std::int64_t {
        std::int32_t found = 0;
        for (std::int64_t i = 0; i < rows.count; ++i) {
            const std::uint64_t key = keys.keys[i];
            if (i + ahead < rows.count) __builtin_prefetch(keys.slots + (keys.keys[i + ahead] >> shift), 1);
            std::uint64_t slot = key >> shift;
            std::int64_t before;
            while ((before = keys.slots[slot]) >= 0) {
                if (keys.keys[before] == key) {
                    if (equal_rows(rows.data + before * bytes, rows.data + i * bytes, bytes)) break;
                    repeats.back[i] = static_cast<std::int32_t>(i - before);
                    if (keys.exact) return -1 - i;
                }
                slot = (slot + 1) & mask;
            }
            keys.slots[slot] = static_cast<std::int32_t>(i);
            repeats.ids[i] = before < 0 ? found++ : repeats.ids[before];
            repeats.back[i] = before < 0 ? 0 : static_cast<std::int32_t>(i - before);
        }
        return found;
    });
}

void take_rows(const Rows& rows, const std::int32_t* ids, std::int64_t begin, std::int64_t end, std::uint8_t* to) {
    with_size(rows.bytes, [&](auto bytes) {
        for (std::int64_t i = begin; i < end; ++i) copy_row(rows.data + ids[i] * bytes, bytes, to + i * bytes);
    });
}

// A row is written, and the next one over it where it was not new: to copy a short one costs less than a wrong guess.
void keep_new_rows(const Rows& rows, const std::int32_t* back, std::int64_t kept, std::uint8_t* to) {
    with_size(rows.bytes, [&](auto bytes) {
        for (std::int64_t i = 0, done = 0; done < kept; done += back[i++] == 0) {
            if (bytes <= 256 || back[i] == 0) copy_row(rows.data + i * bytes, bytes, to + done * bytes);
        }
    });
}

void keep_literals(const Rows& rows, const RowMatch* matches, std::int64_t count, std::uint8_t* to) {
    with_size(rows.bytes, [&](auto bytes) {
        const std::uint8_t *from = rows.data, *end = rows.data + rows.count * bytes;
        for (std::int64_t m = 0; m < count; ++m) {
            to = copy_run(from, matches[m].literals, bytes, to);
            from += (matches[m].literals + matches[m].rows) * std::int64_t{bytes};
        }
        copy_run(from, (end - from) / bytes, bytes, to);
    });
}

void put_matches(const RowMatch* matches, std::int64_t count, std::int64_t row_bytes, const std::uint8_t* literals,
                 std::uint8_t* to) {
    with_size(row_bytes, [&](auto bytes) {
        for (std::int64_t m = 0; m < count; ++m) {
            to = copy_run(literals, matches[m].literals, bytes, to);
            literals += matches[m].literals * std::int64_t{bytes};
            to = copy_run(to - matches[m].back * std::int64_t{bytes}, matches[m].rows, bytes, to);
        }
    });
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
