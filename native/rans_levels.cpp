#include "rans_levels.h"

#include <algorithm>
#include <cstring>

#include "rans_book.h"

namespace laconic {
namespace {

constexpr int kWeightBits = 20;
constexpr int kOrders = 4, kRunOrder = 1;
constexpr int kMostZeros = 12;

int bits_of(std::uint64_t value) { return value == 0 ? 0 : 64 - __builtin_clzll(value); }

std::uint32_t level_of(std::uint64_t count, int shift) {
    const std::uint64_t scaled = (count + (std::uint64_t{1} << shift >> 1)) >> shift;
    const auto weight = static_cast<std::uint32_t>(std::max<std::uint64_t>(scaled, 1));
    if (weight < 16) return weight;
    const int exponent = bits_of(weight) - 1;
    const std::uint32_t rounded = (weight + (1u << (exponent - 4))) >> (exponent - 3);
    return 8 * static_cast<std::uint32_t>(exponent - 3) + rounded;
}

int golomb_bits(std::uint32_t value, int order) { return 2 * bits_of(value + (1u << order)) - 1 - order; }

// Calls level(difference, folded) for each level that is stored, and run(length) behind each that is 0.
template <class Level, class Run>
void over_levels(const RansLevels& levels, int alphabet, Level level, Run run) {
    int last = 0, symbol = 0;
    for (int i = 0; i < levels.present; ++i) {
        if (levels.symbols[i] > symbol) {
            level(static_cast<std::uint32_t>(last > 0 ? 2 * last - 1 : 0));
            run(static_cast<std::uint32_t>(levels.symbols[i] - symbol));
        }
        const int change = levels.of[i] - last;
        level(static_cast<std::uint32_t>(change >= 0 ? 2 * change : -2 * change - 1));
        last = levels.of[i];
        symbol = levels.symbols[i] + 1;
    }
    if (symbol == alphabet) return;
    level(static_cast<std::uint32_t>(2 * last - 1));
    run(0);
}

int best_order(const RansLevels& levels, int alphabet) {
    int bits[kOrders] = {};
    const auto add = [&](std::uint32_t value) {
        for (int order = 0; order < kOrders; ++order) bits[order] += golomb_bits(value, order);
    };
    over_levels(levels, alphabet, add, [](std::uint32_t) {});
    return static_cast<int>(std::min_element(bits, bits + kOrders) - bits);
}

class Writer {
public:
    explicit Writer(std::uint8_t* to) : start_(to), to_(to) {}

    void put(std::uint32_t value, int length) {
        bits_ |= std::uint64_t{value} << pending_;
        pending_ += length;
        std::memcpy(to_, &bits_, sizeof bits_);
        to_ += pending_ >> 3;
        bits_ >>= pending_ & 56;
        pending_ &= 7;
    }

    void put_golomb(std::uint32_t value, int order) {
        const std::uint32_t shifted = value + (1u << order);
        const int length = bits_of(shifted) - 1;
        put(1u << (length - order), length - order + 1);
        put(shifted - (1u << length), length);
    }

    std::size_t bytes() const { return static_cast<std::size_t>(to_ - start_ + (pending_ > 0)); }

private:
    std::uint8_t* const start_;
    std::uint8_t* to_;
    std::uint64_t bits_ = 0;
    int pending_ = 0;
};

// Gives zeros beyond the end: `is_over` says whether any were taken.
class Reader {
public:
    Reader(const std::uint8_t* from, std::size_t size) : from_(from), bits_(8 * size) {}

    std::uint32_t take(int length) {
        const std::uint32_t value = static_cast<std::uint32_t>(window()) & ((1u << length) - 1);
        at_ += static_cast<std::size_t>(length);
        return value;
    }

    // At least kMostGolomb for what is none.
    std::uint32_t take_golomb(int order) {
        const auto ahead = static_cast<std::uint32_t>(window()) | 1u << (kMostZeros + 1);
        const int zeros = __builtin_ctz(ahead);
        if (zeros > kMostZeros) return kNone;
        at_ += static_cast<std::size_t>(zeros + 1);
        return (1u << (order + zeros)) + take(order + zeros) - (1u << order);
    }

    bool is_over() const { return at_ > bits_; }
    std::size_t bytes() const { return (at_ + 7) / 8; }
    bool ends_in_zeros() { return is_over() || take(static_cast<int>(-at_ & 7)) == 0; }

    static constexpr std::uint32_t kNone = ~std::uint32_t{0};

private:
    std::uint64_t window() const {
        std::uint64_t bytes = 0;
        const std::size_t first = std::min(at_, bits_) >> 3, left = (bits_ >> 3) - first;
        std::memcpy(&bytes, from_ + first, std::min<std::size_t>(left, sizeof bytes));
        return at_ < bits_ ? bytes >> (at_ & 7) : 0;
    }

    const std::uint8_t* from_;
    std::size_t bits_, at_ = 0;
};

bool read_levels(Reader& in, int order, int alphabet, RansLevels& levels) {
    int last = 0;
    for (int symbol = 0; symbol < alphabet;) {
        const std::uint32_t change = in.take_golomb(order);
        if (change == Reader::kNone || in.is_over()) return false;
        const int level = last + static_cast<int>(change >> 1 ^ (0u - (change & 1)));
        if (level < 0 || level > kRansMostLevel) return false;
        if (level > 0) {
            levels.add(symbol++, static_cast<std::uint32_t>(level));
            last = level;
            continue;
        }
        const std::uint32_t run = in.take_golomb(kRunOrder);
        if (run == Reader::kNone || in.is_over() || run > static_cast<std::uint32_t>(alphabet - symbol)) return false;
        symbol = run == 0 ? alphabet : symbol + static_cast<int>(run);
    }
    return true;
}

}  // namespace

void RansLevels::fill(const std::uint64_t* counts, int alphabet) {
    std::uint64_t sum = 0;
    int occurring = 0;
    for (int symbol = 0; symbol < alphabet; ++symbol) {
        sum += counts[symbol];
        occurring += counts[symbol] > 0;
    }
    int joining = std::max(0, 2 - occurring);
    sum += static_cast<std::uint64_t>(joining);
    const int shift = std::max(0, bits_of(sum) - kWeightBits);
    present = 0;
    for (int symbol = 0; symbol < alphabet; ++symbol) {
        if (counts[symbol] > 0) {
            add(symbol, level_of(counts[symbol], shift));
        } else if (joining > 0) {
            --joining;
            add(symbol, level_of(1, shift));
        }
    }
}

std::size_t write_rans_levels(const RansLevels& levels, int bits, int direct, int alphabet, std::uint8_t* to) {
    Writer out(to);
    const int order = best_order(levels, alphabet);
    out.put(static_cast<std::uint32_t>(bits - kRansLeastBits), 3);
    out.put(static_cast<std::uint32_t>(order), 2);
    if (direct > 0) out.put(static_cast<std::uint32_t>(direct), 4);
    over_levels(levels, alphabet, [&](std::uint32_t change) { out.put_golomb(change, order); },
                [&](std::uint32_t run) { out.put_golomb(run, kRunOrder); });
    return out.bytes();
}

std::size_t read_rans_levels(const std::uint8_t* from, std::size_t size, int itemsize, RansLevels& levels, int& bits,
                             int& direct) {
    const int most = rans_alphabet(itemsize, itemsize > 1 ? kRansMostDirect : 0);
    Reader in(from, std::min(size, static_cast<std::size_t>(2 + 3 * most)));
    bits = kRansLeastBits + static_cast<int>(in.take(3));
    const int order = static_cast<int>(in.take(2));
    direct = itemsize > 1 ? static_cast<int>(in.take(4)) : 0;
    if (itemsize > 1 && (direct < kRansLeastDirect || direct > kRansMostDirect)) return 0;
    levels.present = 0;
    if (!read_levels(in, order, rans_alphabet(itemsize, direct), levels)) return 0;
    if (levels.present < 2 || levels.present >= 1 << bits || !in.ends_in_zeros()) return 0;
    return in.bytes();
}

}  // namespace laconic
