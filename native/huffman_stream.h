// What stands in front of a stream's chunks; docs/format.md says it byte by byte.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

#include "huffman_job.h"
#include "threads.h"

namespace laconic {

// The first byte of a stream.
enum class HuffmanMode : std::uint8_t { raw, constant, words, shared };

// A chunk's place in the table of sizes: 14 bits, and 2 for its book; 16 bits for its extra bits.
constexpr int kSizeBytes = 2, kSizeBits = 14;

inline std::int64_t chunks_of(std::int64_t count, int chunk_log) {
    return (count >> chunk_log) + ((count & ((std::int64_t{1} << chunk_log) - 1)) != 0);
}

// Without constructors and exceptions: null where there is no memory.
template <class T>
std::unique_ptr<T[]> allocate(std::int64_t count) {
    return std::unique_ptr<T[]>(new (std::nothrow) T[static_cast<std::size_t>(count)]);
}

// Calls body(begin, end) for all chunks of so many codes, in ranges that are worth a thread.
template <class Body>
void over_chunks(std::int64_t chunks, std::int64_t codes, int threads, Body body) {
    constexpr std::int64_t least_at_once = 16, codes_worth_threads = 256 * 1024;
    if (codes < codes_worth_threads) threads = 1;
    const std::int64_t share = chunks / (4 * (threads > 0 ? threads : 1));
    const auto call = [](void* context, std::int64_t begin, std::int64_t end) {
        (*static_cast<Body*>(context))(begin, end);
    };
    parallel_for(chunks, share > least_at_once ? share : least_at_once, threads, call, &body);
}

}  // namespace laconic
