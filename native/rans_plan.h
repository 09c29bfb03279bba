// What a stream will be with a certain book, before a byte of it is written.
#pragma once

#include <cstdint>

#include "rans.h"
#include "rans_book.h"
#include "rans_stream.h"

namespace laconic {

// Whether it takes words to write such codes: two at least, and not all equal.
bool rans_in_words(const RansCodes& codes, int itemsize);

// How often each symbol of the largest alphabet occurs.
struct RansCounts {
    std::uint64_t of[kRansSymbols];

    void fill(const RansJob& job, int threads);

    // The same for a smaller alphabet; `to` has room for the largest.
    const std::uint64_t* with_direct(int itemsize, int direct, std::uint64_t* to) const;

    // Calls body(direct) for those that are tried, the fastest first: 0 for codes of 1 byte.
    template <class Body>
    void over_directs(int itemsize, Body body) const {
        if (itemsize == 1) return body(0);
        if (has_from(1 << 7, itemsize)) body(11);
        if (has_from(1 << 4, itemsize)) body(7);
        body(4);
    }

private:
    bool has_from(int symbol, int itemsize) const;
};

struct RansPlan {
    bool possible;
    std::int64_t words, extra;  // the bytes of words, and the extra bits
    std::int64_t stored;        // the bytes of the book; 0 where it is shared
    std::int64_t chunks;

    int lanes_log() const;

    // About how many bytes it takes.
    std::int64_t estimate() const;
};

// The best book of a stream's own, and what it would be with that.
RansPlan plan_own(const RansCounts& counts, int itemsize, std::int64_t chunks, RansBook& book, RansStored& stored);

RansPlan plan_shared(const RansCounts& counts, int itemsize, std::int64_t chunks, const RansBook& book);

}  // namespace laconic
