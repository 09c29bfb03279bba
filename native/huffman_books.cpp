#include "huffman_books.h"

#include <algorithm>

#include "huffman_stream.h"

namespace laconic {
namespace {

// A book costs time and room of its own.
int books_for(std::int64_t codes) { return codes < 1 << 16 ? 1 : codes < 1 << 19 ? 2 : kMostBooks; }

// How many symbols there are for codes of this size.
int symbols_for(int itemsize) { return itemsize == 1 ? kSymbols : itemsize == 2 ? 164 : kWideSymbols; }

// 1 + floor(log2(value)).
int bit_width(std::int64_t value) {
    int width = 0;
    for (; value > 0; value >>= 1) ++width;
    return width;
}

class Grouping {
public:
    Grouping(const CountedChunks& counted, int threads)
        : counted_(counted),
          threads_(threads),
          order_(allocate<std::int64_t>(counted.chunks)),
          worth_(allocate<std::int64_t>(counted.chunks)),
          costs_(allocate<std::int32_t>(counted.chunks)) {
        for (std::int64_t chunk = 0; order_ && chunk < counted.chunks; ++chunk) order_[chunk] = chunk;
    }

    bool has_memory() const { return order_ && worth_ && costs_; }

    // By what a code in them would cost, with about as many bits for a symbol as its frequency in all is worth.
    void sort() {
        std::int64_t sums[kSymbols];
        sum(0, counted_.chunks, sums);
        SymbolTable cost;
        for (int symbol = 0; symbol < kSymbols; ++symbol) {
            const int width = sums[symbol] == 0 ? 0 : bit_width(counted_.codes / sums[symbol]);
            cost.of[symbol] = static_cast<std::int16_t>(width);
        }
        find_costs(counted_, cost, threads_, costs_.get());
        for (std::int64_t chunk = 0; chunk < counted_.chunks; ++chunk) {
            worth_[chunk] = costs_[chunk] * std::int64_t{kMostChunk} / codes_of(counted_.counts[chunk]);
        }
        std::sort(order_.get(), order_.get() + counted_.chunks, [this](std::int64_t a, std::int64_t b) {
            return worth_[a] != worth_[b] ? worth_[a] < worth_[b] : a < b;
        });
    }

    HuffmanBook book_of(int group, int groups) const {
        std::int64_t sums[kSymbols];
        sum(counted_.chunks * group / groups, counted_.chunks * (group + 1) / groups, sums);
        return make_book(sums);
    }

private:
    static std::int64_t codes_of(const SymbolTable& counts) {
        std::int64_t codes = 0;
        for (const std::int16_t count : counts.of) codes += count;
        return codes;
    }

    void sum(std::int64_t begin, std::int64_t end, std::int64_t* sums) const {
        std::fill_n(sums, kSymbols, 0);
        LACONIC_CHOOSE_KERNEL(huffman_sum)(counted_.counts, order_.get() + begin, end - begin, sums);
    }

    const CountedChunks counted_;
    const int threads_;
    std::unique_ptr<std::int64_t[]> order_, worth_;
    std::unique_ptr<std::int32_t[]> costs_;
};

}  // namespace

void HuffmanBooks::add(const HuffmanBook& book) {
    of[size++] = book;
    bytes += write_book(book, stored + bytes);
}

void find_costs(const CountedChunks& counted, const SymbolTable& cost, int threads, std::int32_t* costs) {
    const auto kernel = LACONIC_CHOOSE_KERNEL(huffman_cost);
    over_chunks(counted.chunks, counted.codes, threads, [&](std::int64_t begin, std::int64_t end) {
        kernel(counted.counts, begin, end, cost, costs);
    });
}

bool make_books(const CountedChunks& counted, int threads, HuffmanBooks& books) {
    Grouping grouping(counted, threads);
    if (!grouping.has_memory()) return false;
    const int groups = books_for(counted.codes);
    if (groups > 1) grouping.sort();
    for (int group = 0; group < groups; ++group) books.add(grouping.book_of(group, groups));
    return true;
}

std::size_t read_book_for(int itemsize, const std::uint8_t* from, std::size_t size, HuffmanBook& book) {
    const std::size_t bytes = read_book(from, size, book);
    if (bytes == 0) return 0;
    for (int symbol = symbols_for(itemsize); symbol < kSymbols; ++symbol) {
        if (book.lengths[symbol] != 0) return 0;
    }
    return bytes;
}

bool read_books(int itemsize, const std::uint8_t* from, std::size_t size, HuffmanBooks& books) {
    for (std::size_t at = 0; at < size;) {
        HuffmanBook book;
        const std::size_t bytes = read_book_for(itemsize, from + at, size - at, book);
        if (bytes == 0 || books.size == kMostBooks) return false;
        books.add(book);
        at += bytes;
    }
    return books.size > 0;
}

}  // namespace laconic
