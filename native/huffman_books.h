// The books of a stream, or of many: made from what the chunks hold, stored and read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "huffman_job.h"

namespace laconic {

struct HuffmanBooks {
    HuffmanBook of[kMostBooks];
    int size = 0;
    std::uint8_t stored[kMostBooks * kMaxBookBytes];
    std::size_t bytes = 0;  // of the stored form

    void add(const HuffmanBook& book);
};

// How often each symbol occurs in each of some chunks, which hold so many codes in all.
struct CountedChunks {
    const SymbolTable* counts;
    std::int64_t chunks, codes;
};

// What the symbols of each chunk cost.
void find_costs(const CountedChunks& counted, const SymbolTable& cost, int threads, std::int32_t* costs);

// Groups chunks of a like entropy, more groups for more codes, and makes a book for each group: every symbol that
// occurs has a word, and those of a chunk have theirs in one book. False without memory.
bool make_books(const CountedChunks& counted, int threads, HuffmanBooks& books);

// One book from the beginning of these bytes, and the number of those that it takes: 0 where there is none, or one
// with symbols that codes of this size do not have.
std::size_t read_book_for(int itemsize, const std::uint8_t* from, std::size_t size, HuffmanBook& book);

// All these bytes as books one behind the other; false where they are anything else.
bool read_books(int itemsize, const std::uint8_t* from, std::size_t size, HuffmanBooks& books);

}  // namespace laconic
