// The inner loop of decoding: words to symbols. Whatever the bytes say, nothing is read outside a chunk's words, nor
// written outside its symbols.
#pragma once

#include <cstdint>

#include "rans_symbols.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

// Takes a symbol off a state.
template <bool small>
inline std::uint32_t pop(std::uint32_t& x, const RansDecodeTable& table, int bits) {
    const std::uint32_t slot = x & ((1u << bits) - 1), entry = table.entries[slot];
    if constexpr (small) {
        x = (entry >> 8 & 0xfff) * (x >> bits) + (entry >> 20);
        return entry & 0xff;
    } else {
        x = (entry & 0xffff) * (x >> bits) + (entry >> 16);
        return table.symbols[slot];
    }
}

class DecodeLanes {
public:
    DecodeLanes(const RansJob& job, const std::uint8_t* begin, const std::uint8_t* end)
        : table_(*job.decode), bits_(job.bits), lanes_(1 << job.lanes_log), at_(begin), end_(end) {}

    // False where there are no states, or half a word. Of a single state the zeros are left out.
    bool read_states() {
        const std::int64_t size = end_ - at_;
        unsigned bytes = 4;
        if (lanes_ == 1) bytes = size < 4 ? static_cast<unsigned>(size) : 4 - (size & 1);
        const std::int64_t all = static_cast<std::int64_t>(bytes) * lanes_;
        if (size < all || (size - all) % 2 != 0) return false;
        __builtin_memset(states_, 0, sizeof states_);
        __builtin_memcpy(states_, at_, static_cast<std::size_t>(all));
        at_ += all;
        return true;
    }

    // A block, or what is left of the chunk.
    template <class Symbol>
    void read(Symbol* symbols, std::int64_t count) {
        table_.small ? read_some<true>(symbols, count) : read_some<false>(symbols, count);
    }

    // Whether all words are taken, and every state is what it was before it wrote any.
    bool is_done() const {
        bool done = at_ == end_;
        for (int lane = 0; lane < lanes_; ++lane) done &= states_[lane] == rans_start(lanes_);
        return done;
    }

private:
    template <bool small, class Symbol>
    void read_some(Symbol* symbols, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
            std::uint32_t& x = states_[i & (lanes_ - 1)];
            symbols[i] = static_cast<Symbol>(pop<small>(x, table_, bits_));
            if (x < kRansLeastState && at_ < end_) {
                x = x << 16 | load_value<std::uint16_t>(at_);
                at_ += 2;
            }
        }
    }

    const RansDecodeTable& table_;
    const int bits_, lanes_;
    const std::uint8_t* at_;
    const std::uint8_t* const end_;
    alignas(64) std::uint32_t states_[kRansMostLanes];
};

}  // namespace
}  // namespace laconic::LACONIC_ISA_NAMESPACE
