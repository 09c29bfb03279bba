// Rows that occur again: which they are, and how they are put where they belong. The kernels are compiled once per
// instruction set, see isa.h; what they find depends on the rows' bytes alone, not on how these are hashed.
#pragma once

#include <cstdint>

#include "isa.h"

namespace laconic {

constexpr std::int64_t kMostRows = 0x7fffffff;

// Rows one behind the other, each of `bytes` bytes, 1 at least; no more than kMostRows.
struct Rows {
    const std::uint8_t* data;
    std::int64_t count, bytes;

    const std::uint8_t* at(std::int64_t row) const { return data + row * bytes; }
    Rows from(std::int64_t row, std::int64_t rows) const { return {at(row), rows, bytes}; }
};

// For each row which of the different ones it is, numbered as they first occur, and how many rows back the last one
// equal to it lies: 0 for none.
struct Repeats {
    std::int32_t* ids;
    std::int32_t* back;
};

// So many literal rows, and then so many that equal those so far back, which may be some of them.
struct RowMatch {
    std::uint32_t literals, rows, back;
};

// What stands in for rows while equal ones are looked for; equal rows have equal keys.
struct RowKeys {
    std::uint64_t* keys;
    std::int32_t* slots;  // slots_for(count) of them
    bool exact;           // whether equal keys promise equal rows
};

// Few enough stay in the cache, and most stay empty: whether a slot is taken should be no surprise.
constexpr std::int64_t slots_for(std::int64_t rows) {
    std::int64_t slots = 16;
    while (slots < 4 * rows) slots *= 2;
    return slots;
}

LACONIC_DECLARE_KERNEL(
    void hash_rows(const Rows& rows, std::int64_t begin, std::int64_t end, std::uint64_t* keys);
    // Gives the number of different rows. Or -1 - i where row i differs from the one repeats.back[i] rows before it
    // in spite of equal, exact keys.
    std::int64_t find_repeats(const Rows& rows, const RowKeys& keys, const Repeats& repeats);
    // Row i of `to` is row ids[i] of `rows`.
    void take_rows(const Rows& rows, const std::int32_t* ids, std::int64_t begin, std::int64_t end, std::uint8_t* to);
    // Those that occur for the first time, `kept` of them, one behind the other.
    void keep_new_rows(const Rows& rows, const std::int32_t* back, std::int64_t kept, std::uint8_t* to);
    // The rows that no match covers, one behind the other.
    void keep_literals(const Rows& rows, const RowMatch* matches, std::int64_t count, std::uint8_t* to);
    // The way back, as far as the last match goes. What is left of the literals may lie behind that already: they are
    // never before the place that they are copied to.
    void put_matches(const RowMatch* matches, std::int64_t count, std::int64_t row_bytes,
                     const std::uint8_t* literals, std::uint8_t* to);)

}  // namespace laconic
