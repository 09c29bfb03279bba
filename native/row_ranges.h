// What `rows` and `vlz` share besides the kernels.
#pragma once

#include <cstdint>

#include "repeats.h"
#include "threads.h"

namespace laconic {

// Calls body(begin, end) for all rows, in ranges that are worth a thread.
template <class Body>
void over_rows(std::int64_t rows, std::int64_t bytes, int threads, Body body) {
    constexpr std::int64_t bytes_at_once = 128 * 1024, bytes_worth_threads = 1024 * 1024;
    if (rows * bytes < bytes_worth_threads) threads = 1;
    const auto call = [](void* context, std::int64_t begin, std::int64_t end) {
        (*static_cast<Body*>(context))(begin, end);
    };
    parallel_for(rows, 1 + bytes_at_once / bytes, threads, call, &body);
}

// The last rows first: whoever reads all of them next begins with those that are still in the cache.
template <class Hash>
void hash_backwards(Hash hash, const Rows& rows, std::int64_t begin, std::int64_t end, std::uint64_t* keys) {
    const std::int64_t at_once = 1 + 16 * 1024 / rows.bytes;
    for (; end > begin; end -= at_once) hash(rows, end - at_once > begin ? end - at_once : begin, end, keys);
}

// Of the rows themselves; or, exact ones, of the numbers that are given for them.
inline void make_keys(const Rows& rows, const std::int64_t* given, int threads, std::uint64_t* keys) {
    const auto hash = LACONIC_CHOOSE_KERNEL(hash_rows);
    over_rows(rows.count, rows.bytes, threads, [&](std::int64_t begin, std::int64_t end) {
        if (given == nullptr) return hash_backwards(hash, rows, begin, end, keys);
        for (std::int64_t i = begin; i < end; ++i) keys[i] = static_cast<std::uint64_t>(given[i]) * 0x9e3779b97f4a7c15;
    });
}

// Whether what says how rows repeat takes so much less than they do that it pays also if they are entropy-coded.
inline bool is_worth_it(std::int64_t bytes, std::int64_t bytes_of_repeats) { return 4 * bytes <= bytes_of_repeats; }

}  // namespace laconic
