// A few sleeping threads that help whoever calls parallel_for.
#pragma once

#include <cstdint>

namespace laconic {

// Half-open ranges of [0, count), each handed to `body` exactly once. `body` must not throw.
using RangeBody = void (*)(void* context, std::int64_t begin, std::int64_t end);

// Runs `body` over [0, count) in ranges of `grain`, on at most `threads` threads including the
// caller's, and returns when all of it is done. Runs on the caller's thread alone when the helpers
// are busy with another call.
void parallel_for(std::int64_t count, std::int64_t grain, int threads, RangeBody body, void* context);

}  // namespace laconic
