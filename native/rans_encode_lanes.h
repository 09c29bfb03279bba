// The inner loop of encoding: symbols to words, from the last one to the first.
#pragma once

#include <cstdint>

#include "rans_symbols.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

// A state that would grow beyond 32 bits leaves its lower half as a word. Written without a branch.
inline std::uint32_t push(std::uint32_t x, const RansSymbol& symbol, int bits, std::uint8_t*& to) {
    const bool leaves = x >= static_cast<std::uint32_t>(symbol.frequency) << (32 - bits);
    store_value(to - 2, static_cast<std::uint16_t>(x));
    to -= leaves ? 2 : 0;
    x = leaves ? x >> 16 : x;
    const auto quotient = static_cast<std::uint32_t>(static_cast<unsigned __int128>(x) * symbol.reciprocal >> 64);
    return x + symbol.bias + quotient * symbol.complement;
}

class EncodeLanes {
public:
    EncodeLanes(const RansJob& job, std::uint8_t* end)
        : table_(*job.encode), bits_(job.bits), lanes_(1 << job.lanes_log), to_(end) {
        for (int lane = 0; lane < lanes_; ++lane) states_[lane] = rans_start(lanes_);
    }

    // A block, or what there is of one.
    template <class Symbol>
    void write(const Symbol* symbols, std::int64_t count) {
        for (std::int64_t i = count - 1; i >= 0; --i) {
            std::uint32_t& x = states_[i & (lanes_ - 1)];
            x = push(x, table_.symbols[symbols[i]], bits_, to_);
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
    const RansEncodeTable& table_;
    const int bits_, lanes_;
    std::uint8_t* to_;
    alignas(64) std::uint32_t states_[kRansMostLanes];
};

}  // namespace
}  // namespace laconic::LACONIC_ISA_NAMESPACE
