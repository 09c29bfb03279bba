#include "rans_book.h"

#include <algorithm>
#include <cstring>

#include "rans_levels.h"

namespace laconic {
namespace {

constexpr int kLogBits = 16;

// floor(2^16 * log2(1 + i / 2^11)), by squaring.
struct Logs {
    std::uint16_t of[2048] = {};

    constexpr Logs() {
        for (std::uint64_t i = 0; i < 2048; ++i) {
            std::uint64_t x = (2048 + i) << 20;
            std::uint32_t log = 0;
            for (int bit = 0; bit < kLogBits; ++bit) {
                x = x * x >> 31;
                const std::uint64_t large = x >> 32;
                x >>= large;
                log = log << 1 | static_cast<std::uint32_t>(large);
            }
            of[i] = static_cast<std::uint16_t>(log);
        }
    }
};
constexpr Logs kLogs;

std::uint32_t log2_of(std::uint32_t value) {
    const int exponent = 31 - __builtin_clz(value);
    return static_cast<std::uint32_t>(exponent << kLogBits) + kLogs.of[(value << 11 >> exponent) & 2047];
}

// One slot for each symbol that occurs, and the others in proportion to what its weight is worth beyond that.
void fill_frequencies(const RansLevels& levels, int bits, RansBook& book) {
    book.bits = bits;
    std::memset(book.frequencies, 0, static_cast<std::size_t>(book.alphabet) * sizeof book.frequencies[0]);
    std::uint64_t sum = 0, sum_beyond = 0;
    for (int i = 0; i < levels.present; ++i) sum += rans_weight(levels.of[i]);
    const auto beyond = [&](int i) {
        const std::uint64_t weight = std::uint64_t{rans_weight(levels.of[i])} << bits;
        return weight > sum ? weight - sum : 0;
    };
    for (int i = 0; i < levels.present; ++i) sum_beyond += beyond(i);
    const auto left = static_cast<std::uint64_t>((1 << bits) - levels.present);
    std::uint64_t end = 0, before = 0;
    for (int i = 0; i < levels.present; ++i) {
        end += beyond(i);
        const std::uint64_t slots = end * left / sum_beyond;
        book.frequencies[levels.symbols[i]] = static_cast<std::uint16_t>(1 + slots - before);
        before = slots;
    }
}

void set_alphabet(RansBook& book, int itemsize, int direct, const RansLevels& levels) {
    book.direct = direct;
    book.alphabet = rans_alphabet(itemsize, direct);
    book.has_extra = direct > 0 && levels.symbols[levels.present - 1] >= 1 << direct;
}

std::int64_t cost_of(const RansBook& book, const RansLevels& levels, const std::uint64_t* counts) {
    std::uint64_t cost = 0;
    for (int i = 0; i < levels.present; ++i) {
        const int symbol = levels.symbols[i];
        const auto bits = static_cast<std::uint32_t>(book.bits << kLogBits) - log2_of(book.frequencies[symbol]);
        cost += counts[symbol] * bits;
    }
    return static_cast<std::int64_t>(cost >> kLogBits);
}

}  // namespace

std::int64_t RansBook::cost(const std::uint64_t* counts) const {
    std::uint64_t sum = 0;
    for (int symbol = 0; symbol < alphabet; ++symbol) {
        if (counts[symbol] == 0) continue;
        if (frequencies[symbol] == 0) return -1;
        sum += counts[symbol] * (static_cast<std::uint32_t>(bits << kLogBits) - log2_of(frequencies[symbol]));
    }
    return static_cast<std::int64_t>(sum >> kLogBits);
}

void make_rans_book(const std::uint64_t* counts, int itemsize, int direct, RansBook& book, RansStored& stored) {
    // And by what part of the cost of the last one they may be dearer, as a power of two.
    constexpr int tried[][2] = {{10, 9}, {12, 8}, {13, 8}, {15, 0}};
    RansLevels levels;
    levels.fill(counts, rans_alphabet(itemsize, direct));
    set_alphabet(book, itemsize, direct, levels);
    fill_frequencies(levels, tried[3][0], book);
    const std::int64_t least = cost_of(book, levels, counts);
    for (const auto& [bits, dearer] : tried) {
        if (levels.present >= 1 << bits) continue;
        fill_frequencies(levels, bits, book);
        if (cost_of(book, levels, counts) <= least + (least >> dearer)) break;
    }
    stored.size = write_rans_levels(levels, book.bits, direct, book.alphabet, stored.bytes);
}

std::size_t read_rans_book(const std::uint8_t* from, std::size_t size, int itemsize, RansBook& book) {
    RansLevels levels;
    int bits, direct;
    const std::size_t used = read_rans_levels(from, size, itemsize, levels, bits, direct);
    if (used == 0) return 0;
    set_alphabet(book, itemsize, direct, levels);
    fill_frequencies(levels, bits, book);
    return used;
}

void RansBook::fill(RansEncodeTable& table) const {
    const std::uint32_t slots = 1u << bits;
    std::uint32_t start = 0;
    for (int symbol = 0; symbol < alphabet; ++symbol) {
        const std::uint32_t frequency = frequencies[symbol];
        if (frequency == 0) continue;
        // Of 1, whose reciprocal would not fit, the quotient comes out too small by one.
        const std::uint64_t reciprocal = frequency == 1 ? ~std::uint64_t{0} : ~std::uint64_t{0} / frequency + 1;
        const std::uint32_t bias = start + (frequency == 1 ? slots - 1 : 0);
        table.symbols[symbol] = {reciprocal, bias, static_cast<std::uint16_t>(frequency),
                                 static_cast<std::uint16_t>(slots - frequency)};
        table.packed[symbol] = frequency | start << 16;
        start += frequency;
    }
    fill_near(table);
}

// Bytes may be signed: the first is the one behind the widest gap, which may lie between the largest and the smallest.
void RansBook::fill_near(RansEncodeTable& table) const {
    int smallest = -1, last = -1, first = 0, gap = 0;
    for (int symbol = 0; symbol < alphabet; ++symbol) {
        if (frequencies[symbol] == 0) continue;
        if (smallest < 0) smallest = symbol;
        if (last >= 0 && symbol - last > gap) {
            gap = symbol - last;
            first = symbol;
        }
        last = symbol;
    }
    if (direct > 0 || alphabet + smallest - last >= gap) {
        gap = alphabet + smallest - last;
        first = smallest;
    }
    table.first = static_cast<std::uint32_t>(first);
    table.span = alphabet - gap + 1;
    for (int k = 0; k < std::min(table.span, kRansNear); ++k) {
        const int symbol = (first + k) % alphabet;
        table.near[k] = frequencies[symbol] == 0 ? 0 : table.packed[symbol];
    }
}

bool RansBook::is_small() const {
    if (alphabet > 256) return false;
    return bits <= kRansSmallBits || *std::max_element(frequencies, frequencies + alphabet) < 1 << kRansSmallBits;
}

void RansBook::fill(const RansDecodeTable& table) const {
    std::uint32_t* entry = table.entries;
    std::uint16_t* name = table.symbols;
    for (int symbol = 0; symbol < alphabet; ++symbol) {
        const std::uint32_t frequency = frequencies[symbol];
        if (table.small) {
            const std::uint32_t first = static_cast<std::uint32_t>(symbol) << 24 | frequency;
            for (std::uint32_t k = 0; k < frequency; ++k) entry[k] = first | k << 12;
        } else {
            for (std::uint32_t k = 0; k < frequency; ++k) entry[k] = frequency | k << 16;
            std::fill_n(name, frequency, static_cast<std::uint16_t>(symbol));
            name += frequency;
        }
        entry += frequency;
    }
}

}  // namespace laconic
