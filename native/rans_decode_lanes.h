// The inner loop of decoding: words to symbols. Whatever the bytes say, nothing is read outside a chunk's words, nor
// written outside its symbols.
#pragma once

#include <cstdint>

#include "rans_vectors.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

// Takes a symbol off a state.
template <bool small>
inline std::uint32_t pop(std::uint32_t& x, const RansDecodeTable& table, int bits) {
    const std::uint32_t slot = x & ((1u << bits) - 1), entry = table.entries[slot];
    if constexpr (small) {
        x = (entry & 0xfff) * (x >> bits) + (entry >> 12 & 0xfff);
        return entry >> 24;
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
        for (int lane = 0; lane < lanes_; ++lane) done &= states_[lane] == rans_start(lanes_, bits_);
        return done;
    }

private:
    template <bool small, class Symbol>
    void read_some(Symbol* symbols, std::int64_t count) {
        std::int64_t done = 0;
        switch (lanes_) {
            case 32: done = read_groups<small, 32>(symbols, count); break;
            case 16: done = read_groups<small, 16>(symbols, count); break;
            case 8: done = read_groups<small, 8>(symbols, count); break;
            case 4: done = read_groups<small, 4>(symbols, count); break;
            case 2: done = read_groups<small, 2>(symbols, count); break;
            default: done = read_groups<small, 1>(symbols, count); break;
        }
        for (std::int64_t i = done; i < count; ++i) {
            std::uint32_t& x = states_[i & (lanes_ - 1)];
            symbols[i] = static_cast<Symbol>(pop<small>(x, table_, bits_));
            if (x < kRansLeastState && at_ < end_) take_word<8>(x, at_);
        }
    }

    // As many codes as lanes at once, while there are more words than they can take; gives how many were read.
    template <bool small, int lanes, class Symbol>
    std::int64_t read_groups(Symbol* symbols, std::int64_t count) {
#if LACONIC_RANS_VECTORS
        if constexpr (lanes >= 16) return read_vectors<small, lanes>(symbols, count);
#endif
        const RansDecodeTable table = table_;
        const int bits = bits_;
        std::uint32_t states[lanes];
        const std::uint8_t* at = at_;
        std::int64_t i = 0;
        __builtin_memcpy(states, states_, sizeof states);
        for (; i + lanes <= count && end_ - at >= 2 * lanes; i += lanes) {
#pragma GCC unroll 8
            for (int lane = 0; lane < lanes; ++lane) {
                std::uint32_t x = states[lane];
                symbols[i + lane] = static_cast<Symbol>(pop<small>(x, table, bits));
                take_word<lanes>(x, at);
                states[lane] = x;
            }
        }
        at_ = at;
        __builtin_memcpy(states_, states, sizeof states);
        return i;
    }

    // Where the state is too low. Without a branch: nobody could foretell it. Few lanes wait for each step, and many
    // for their number.
    template <int lanes>
    static void take_word(std::uint32_t& x, const std::uint8_t*& at) {
        const unsigned takes = x < kRansLeastState;
        const std::uint32_t word = load_value<std::uint16_t>(at);
        if constexpr (lanes < 8) {
            std::uint32_t taken = x << 16 | word;
            keep_scalar(taken);
            x = __builtin_expect_with_probability(takes, 1, 0.5) ? taken : x;
        } else {
            x = x << 16 * takes | (word & (0 - takes));
        }
        keep_scalar(x);
        at += 2 * takes;
    }

#if LACONIC_RANS_VECTORS
    template <bool small, int lanes, class Symbol>
    std::int64_t read_vectors(Symbol* symbols, std::int64_t count) {
        constexpr int width = kLanes<std::uint32_t>, vectors = lanes / width;
        const RansDecodeTable table = table_;
        const std::uint32_t mask = (1u << bits_) - 1;
        const int bits = bits_;
        const std::uint8_t* at = at_;
        std::int64_t i = 0;
        Words states[vectors];
        __builtin_memcpy(states, states_, sizeof states);
        for (; i + lanes <= count && end_ - at >= 2 * lanes; i += lanes) {
#pragma GCC unroll 4
            for (int v = 0; v < vectors; ++v) {
                const Words slot = states[v] & mask, entry = gather(table.entries, slot);
                const Words frequency = entry & (small ? 0xfff : 0xffff);
                store_symbols(symbols + i + v * width, small ? entry >> 24 : gather(table.symbols, slot));
                states[v] = frequency * (states[v] >> bits) + (small ? entry >> 12 & 0xfff : entry >> 16);
            }
#pragma GCC unroll 4
            for (int v = 0; v < vectors; ++v) {
                const LaneMask takes = are_low(states[v]);
                states[v] = take_words(states[v], takes, at);
                at += 2 * count_lanes(takes);
            }
        }
        at_ = at;
        __builtin_memcpy(states_, states, sizeof states);
        return i;
    }
#endif

    const RansDecodeTable& table_;
    const int bits_, lanes_;
    const std::uint8_t* at_;
    const std::uint8_t* const end_;
    alignas(64) std::uint32_t states_[kRansMostLanes];
};

}  // namespace
}  // namespace laconic::LACONIC_ISA_NAMESPACE
