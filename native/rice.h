// Small numbers as bits, by Rice's code with a limit; docs/format.md says which bits. Bits fill a byte from the
// lowest one on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace laconic {

constexpr unsigned kMostQuotient = 16, kPlainBits = 32;
constexpr int kMostRice = 31;

// The parameter for so many numbers of this sum: where they are geometrically distributed, about the best one.
inline int rice_parameter(std::uint64_t sum, std::uint64_t count) {
    const std::uint64_t mean = count == 0 ? 0 : sum / count;
    const int bits = mean == 0 ? 0 : 63 - __builtin_clzll(mean);
    return bits < kMostRice ? bits : kMostRice;
}

// Writes eight bytes at a time: there is room for seven more than are needed.
class BitSink {
public:
    explicit BitSink(std::uint8_t* to) : to_(to) {}

    void put(std::uint64_t value, unsigned length) {  // 56 bits at most
        bits_ |= value << pending_;
        pending_ += length;
        std::memcpy(to_, &bits_, sizeof bits_);
        to_ += pending_ >> 3;
        bits_ >>= pending_ & 56;
        pending_ &= 7;
    }

    void put_rice(std::uint32_t number, int parameter) {
        const std::uint32_t quotient = number >> parameter;
        if (quotient >= kMostQuotient) {
            put(std::uint64_t{number} << kMostQuotient, kMostQuotient + kPlainBits);
        } else {
            const std::uint64_t rest = number & ((std::uint64_t{1} << parameter) - 1);
            put((rest << 1 | 1) << quotient, quotient + 1 + static_cast<unsigned>(parameter));
        }
    }

    std::uint8_t* end() const { return to_ + (pending_ > 0); }

private:
    std::uint8_t* to_;
    std::uint64_t bits_ = 0;
    unsigned pending_ = 0;  // at most 7 between calls
};

constexpr std::int64_t kMostRiceBytes = 6;  // of a number

// Anybody's bytes. Beyond their end there are zeros, which `done` finds out about.
class BitSource {
public:
    BitSource(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

    std::uint64_t get(unsigned length) {  // kPlainBits at most
        look_ahead();
        const std::uint64_t found = bits_ & ((std::uint64_t{1} << length) - 1);
        skip(length);
        return found;
    }

    std::int64_t get_rice(int parameter) {
        look_ahead();
        if ((bits_ & ((1u << kMostQuotient) - 1)) == 0) {
            const auto plain = static_cast<std::uint32_t>(bits_ >> kMostQuotient);
            skip(kMostQuotient + kPlainBits);
            return plain;
        }
        const unsigned quotient = static_cast<unsigned>(__builtin_ctzll(bits_));
        const std::uint64_t rest = bits_ >> (quotient + 1) & ((std::uint64_t{1} << parameter) - 1);
        skip(quotient + 1 + static_cast<unsigned>(parameter));
        return static_cast<std::int64_t>(std::uint64_t{quotient} << parameter | rest);
    }

    // How many bytes were begun.
    std::size_t bytes() const { return (bit_ + 7) >> 3; }

    bool beyond_end() const { return bytes() > size_; }

    // Whether the bits that were read are there, with zeros after the last one in its byte.
    bool sound() const { return !beyond_end() && ((bit_ & 7) == 0 || data_[bit_ >> 3] >> (bit_ & 7) == 0); }

private:
    // Sees to as many bits as any number has.
    void look_ahead() {
        if (ahead_ >= kMostQuotient + kPlainBits) return;
        const std::size_t byte = bit_ >> 3;
        bits_ = 0;
        if (byte + sizeof bits_ <= size_) {
            std::memcpy(&bits_, data_ + byte, sizeof bits_);
        } else {
            for (std::size_t k = byte; k < size_; ++k) bits_ |= std::uint64_t{data_[k]} << 8 * (k - byte);
        }
        bits_ >>= bit_ & 7;
        ahead_ = 64 - static_cast<unsigned>(bit_ & 7);
    }

    void skip(unsigned bits) {
        bit_ += bits;
        bits_ >>= bits;
        ahead_ -= bits;
    }

    const std::uint8_t* data_;
    const std::size_t size_;
    std::size_t bit_ = 0;
    std::uint64_t bits_ = 0;  // from this one on
    unsigned ahead_ = 0;      // how many there are
};

}  // namespace laconic
