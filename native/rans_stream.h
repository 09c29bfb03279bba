// What stands in front of a stream's chunks; docs/format.md says it byte by byte.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

#include "rans_job.h"
#include "threads.h"

namespace laconic {

// The lowest two bits of a stream's first byte; the logarithm of the number of lanes is above them.
enum class RansMode : std::uint8_t { raw, constant, words, shared };

// All chunks have so many codes, and the last one what is left.
inline std::int64_t rans_chunk_length(std::int64_t count) {
    const std::int64_t chunks = count > kRansMostChunk ? (count - 1) / kRansMostChunk + 1 : 1;
    const std::int64_t each = count / chunks + (count % chunks != 0);
    return (each + 31) / 32 * 32;
}

inline void set_chunks(RansJob& job, std::int64_t count, int itemsize) {
    job.count = count;
    job.itemsize = itemsize;
    job.length = rans_chunk_length(count);
    job.chunks = (count - 1) / job.length + 1;
}

// Without constructors and exceptions: null where there is no memory.
template <class T>
std::unique_ptr<T[]> rans_allocate(std::int64_t count) {
    return std::unique_ptr<T[]>(new (std::nothrow) T[static_cast<std::size_t>(count)]);
}

// Calls body(begin, end) for ranges of so many.
template <class Body>
void over_ranges(std::int64_t count, int threads, Body body) {
    const auto call = [](void* context, std::int64_t begin, std::int64_t end) {
        (*static_cast<Body*>(context))(begin, end);
    };
    parallel_for(count, 1, threads, call, &body);
}

}  // namespace laconic
