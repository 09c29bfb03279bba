// The way back from symbols and extra bits to codes.
#pragma once

#include <cstdint>

#include "huffman_lanes.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

// Symbols to codes of 2 and 4 bytes.
template <class Code>
class Unfolder {
public:
    Unfolder(const std::uint8_t* symbols, Code* codes, const Stream& extra)
        : symbols_(symbols), codes_(codes), extra_(extra) {}

    // Whether the extra bits are as many as the symbols ask for.
    bool unfold_all(std::int64_t count, const std::uint8_t* section_end) {
        constexpr int lanes = kLanes<std::uint32_t>;
        std::int64_t i = 0;
        for (; i + kBlock <= count; i += kBlock) {
            std::uint64_t any = 0;
            for (int k = 0; k < kBlock; k += 8) any |= load_value<std::uint64_t>(symbols_ + i + k);
            if ((any & kAllWithExtra) != 0) {
                unfold_block(i);
                continue;
            }
            for (int k = 0; k < kBlock; k += lanes) {
                store_codes(codes_ + i + k, unfold(widen(load_vector<Bytes>(symbols_ + i + k))));
            }
        }
        for (; i < count; ++i) bit_ += unfold_one(i, extra_.bits_at(bit_));
        return extra_.is_filled_by(bit_, section_end);
    }

private:
    static constexpr std::int64_t kBlock = 16;

    void unfold_block(std::int64_t begin) {
        std::int64_t bit = bit_;
        if (extra_.end - extra_.start - (bit >> 3) < kBlock * 4 + 8) {
            for (std::int64_t i = begin; i < begin + kBlock; ++i) bit += unfold_one(i, extra_.bits_at(bit));
        } else {
            for (std::int64_t i = begin; i < begin + kBlock; ++i) {
                bit += unfold_one(i, load_value<std::uint64_t>(extra_.start + (bit >> 3)) >> (bit & 7));
            }
        }
        bit_ = bit;
    }

    // The number of its extra bits, with which `bits` begin.
    unsigned unfold_one(std::int64_t i, std::uint64_t bits) const {
        const unsigned length = kExtraBits.of[symbols_[i]];
        const std::uint32_t extra = static_cast<std::uint32_t>(bits) & ((1u << length) - 1);
        const std::uint32_t folded = kFoldedBases.of[symbols_[i]] | extra;
        codes_[i] = static_cast<Code>(folded >> 1 ^ (0 - (folded & 1)));
        return length;
    }

    const std::uint8_t* symbols_;
    Code* codes_;
    Stream extra_;
    std::int64_t bit_ = 0;
};

}  // namespace
}  // namespace laconic::LACONIC_ISA_NAMESPACE
