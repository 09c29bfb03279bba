// The inner loop of encoding: symbols to words, from the last one to the first.
#pragma once

#include <cstdint>

#include "rans_vectors.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

// A state that would grow beyond 32 bits leaves its lower half as a word. Without a branch: nobody could foretell it.
inline std::uint32_t push(std::uint32_t x, const RansSymbol& symbol, int bits, std::uint8_t*& to) {
    const unsigned leaves = x >= static_cast<std::uint32_t>(symbol.frequency) << (32 - bits);
    store_value(to - 2, static_cast<std::uint16_t>(x));
    to -= 2 * leaves;
    x >>= 16 * leaves;
    const auto quotient = static_cast<std::uint32_t>(static_cast<unsigned __int128>(x) * symbol.reciprocal >> 64);
    x += symbol.bias + quotient * symbol.complement;
    keep_scalar(x);
    return x;
}

class EncodeLanes {
public:
    EncodeLanes(const RansJob& job, std::uint8_t* end)
        : table_(*job.encode), bits_(job.bits), lanes_(1 << job.lanes_log), to_(end) {
        for (int lane = 0; lane < lanes_; ++lane) states_[lane] = rans_start(lanes_, bits_);
    }

    // A block, or what there is of one.
    template <class Symbol>
    void write(const Symbol* symbols, std::int64_t count) {
        for (; (count & (lanes_ - 1)) != 0; --count) push_one(symbols, count - 1);
        switch (lanes_) {
            case 32: return write_groups<32>(symbols, count);
            case 16: return write_groups<16>(symbols, count);
            case 8: return write_groups<8>(symbols, count);
            case 4: return write_groups<4>(symbols, count);
            case 2: return write_groups<2>(symbols, count);
            default: return write_groups<1>(symbols, count);
        }
    }

    // Puts the states in front of the words, and gives where these begin. Of a single one the zeros are left out.
    std::uint8_t* finish() {
        unsigned bytes = 4;
        if (lanes_ == 1) bytes = (32 - static_cast<unsigned>(__builtin_clz(states_[0])) + 7) / 8;
        to_ -= bytes * static_cast<unsigned>(lanes_);
        __builtin_memcpy(to_, states_, bytes * static_cast<unsigned>(lanes_));
        return to_;
    }

private:
    template <class Symbol>
    void push_one(const Symbol* symbols, std::int64_t i) {
        std::uint32_t& x = states_[i & (lanes_ - 1)];
        x = push(x, table_.symbols[symbols[i]], bits_, to_);
    }

    // As many codes as lanes at once; `count` is a multiple of their number.
    template <int lanes, class Symbol>
    void write_groups(const Symbol* symbols, std::int64_t count) {
#if LACONIC_RANS_VECTORS
        // What the quotients are taken with suffices from so many slots on.
        if constexpr (lanes >= 16) {
            if (bits_ >= 10) return write_vectors<lanes>(symbols, count);
        }
#endif
        std::uint32_t states[lanes];
        std::uint8_t* to = to_;
        __builtin_memcpy(states, states_, sizeof states);
        for (std::int64_t i = count - lanes; i >= 0; i -= lanes) {
#pragma GCC unroll 8
            for (int lane = lanes - 1; lane >= 0; --lane) {
                states[lane] = push(states[lane], table_.symbols[symbols[i + lane]], bits_, to);
            }
        }
        to_ = to;
        __builtin_memcpy(states_, states, sizeof states);
    }

#if LACONIC_RANS_VECTORS
    // First what the table says of all codes of the block: between the words' stores, gathers would wait for these.
    template <int lanes, class Symbol>
    void write_vectors(const Symbol* symbols, std::int64_t count) {
        alignas(64) std::uint32_t entries[kRansBlock];
        if (table_.span <= NearTable::kSize) {
            const NearTable near(table_.near);
            const std::uint32_t first = table_.first, mask = sizeof(Symbol) == 1 ? 0xff : 0xffff;
            look_up([&](Words symbol) { return near[(symbol - first) & mask]; }, symbols, count, entries);
        } else {
            const std::uint32_t* packed = table_.packed;
            for (std::int64_t i = 0; i < count; i += 8) {
#pragma GCC unroll 8
                for (int k = 0; k < 8; ++k) entries[i + k] = packed[symbols[i + k]];
            }
        }
        write_entries<lanes>(entries, count);
    }

    template <class Table, class Symbol>
    static void look_up(const Table& table, const Symbol* symbols, std::int64_t count, std::uint32_t* entries) {
        for (std::int64_t i = 0; i < count; i += kLanes<std::uint32_t>) {
            store_vector(entries + i, table(load_symbols(symbols + i)));
        }
    }

    template <int lanes>
    void write_entries(const std::uint32_t* entries, std::int64_t count) {
        constexpr int width = kLanes<std::uint32_t>, vectors = lanes / width;
        const std::uint32_t slots = 1u << bits_;
        const int bits = bits_;
        std::uint8_t* to = to_;
        Words states[vectors];
        __builtin_memcpy(states, states_, sizeof states);
        for (std::int64_t i = count - lanes; i >= 0; i -= lanes) {
#pragma GCC unroll 4
            for (int v = vectors - 1; v >= 0; --v) {
                const Words entry = load_vector<Words>(entries + i + v * width);
                const Words frequency = entry & 0xffff, start = entry >> 16;
                const LaneMask leaves = is_at_least(states[v], frequency << (32 - bits));
                to = leave_words(states[v], leaves, to);
                const Words x = shifted_where(states[v], leaves), quotient = near_quotients(x, frequency);
                const Words rest = x - quotient * frequency, other = slots - frequency;
                const Words next = (quotient << bits) + rest + start;
                const LaneMask low = is_at_least((Ints)rest, (Ints)frequency), high = is_negative((Ints)rest);
                states[v] = sub_where(add_where(next, low, other), high, other);
            }
        }
        to_ = to;
        __builtin_memcpy(states_, states, sizeof states);
    }
#endif

    const RansEncodeTable& table_;
    const int bits_, lanes_;
    std::uint8_t* to_;
    alignas(64) std::uint32_t states_[kRansMostLanes];
};

}  // namespace
}  // namespace laconic::LACONIC_ISA_NAMESPACE
