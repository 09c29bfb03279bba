// What the fuzzers share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace laconic {

// Memory of exactly so many bytes, so that one more is noticed.
using Memory = std::unique_ptr<std::uint8_t[]>;
inline Memory memory_of(std::int64_t bytes) { return Memory(new std::uint8_t[bytes]()); }

// The input, again and again until it fills so many bytes.
inline Memory filled_with(const std::uint8_t* data, std::int64_t size, std::int64_t bytes) {
    Memory memory = memory_of(bytes);
    for (std::int64_t at = 0; size > 0 && at < bytes; at += size) {
        std::memcpy(memory.get() + at, data, std::min(size, bytes - at));
    }
    return memory;
}

inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

}  // namespace laconic
