// Bits into bytes, and the bits that symbols leave over.
#pragma once

#include <cstdint>
#include <type_traits>

#include "huffman_symbols.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

// Bits into bytes, from the lowest on. Writes 8 bytes at a time.
struct BitWriter {
    std::uint8_t* to;
    std::uint64_t bits = 0;
    unsigned pending = 0;  // at most 7 after a flush

    void put(std::uint64_t value, unsigned length) {
        bits |= value << pending;
        pending += length;
    }

    void flush() {
        store_value(to, bits);
        to += pending >> 3;
        bits >>= pending & 56;
        pending &= 7;
    }

    void put_word(std::uint16_t word) { put(word >> kLengthBits, word & ((1 << kLengthBits) - 1)); }
};

// The bits that symbols leave over, one after another.
template <class Code>
class ExtraWriter {
public:
    ExtraWriter(const Code* codes, const std::uint8_t* symbols, std::uint8_t* to)
        : codes_(codes), symbols_(symbols), out_{to} {}

    // As long as what is written ahead stays before the end to its place, and the rest by way of `last`.
    void write(std::int64_t count, const std::uint8_t* end) {
        constexpr std::int64_t room = kBlock * 4 + 8;
        std::int64_t i = 0;
        for (; i + kBlock <= count && end - out_.to >= room; i += kBlock) write_block(i, kBlock);
        std::uint8_t last[2 * room], *const to = out_.to;
        out_.to = last;
        while (i < count && out_.to - last < room) {
            const std::int64_t block = smaller<std::int64_t>(kBlock, count - i);
            write_block(i, block);
            i += block;
        }
        __builtin_memcpy(to, last, end - to);
    }

private:
    static constexpr std::int64_t kBlock = 8;
    static constexpr std::int64_t kAtOnce = sizeof(Code) == 2 ? 4 : 1;  // as many as 57 bits hold

    void write_block(std::int64_t begin, std::int64_t count) {
        if (count == kBlock && (load_value<std::uint64_t>(symbols_ + begin) & kAllWithExtra) == 0) return;
        BitWriter out = out_;
        std::int64_t i = begin;
        for (; i + kAtOnce <= begin + count; i += kAtOnce) {
            for (int k = 0; k < kAtOnce; ++k) put(out, i + k);
            out.flush();
        }
        for (; i < begin + count; ++i) {
            put(out, i);
            out.flush();
        }
        out_ = out;
    }

    void put(BitWriter& out, std::int64_t i) const {
        const auto code = static_cast<std::int32_t>(static_cast<std::make_signed_t<Code>>(codes_[i]));
        const auto folded = static_cast<std::uint32_t>(code) << 1 ^ static_cast<std::uint32_t>(code >> 31);
        const unsigned length = kExtraBits.of[symbols_[i]];
        out.put(folded & ((1u << length) - 1), length);
    }

    const Code* codes_;
    const std::uint8_t* symbols_;
    BitWriter out_;
};

}  // namespace
}  // namespace laconic::LACONIC_ISA_NAMESPACE
