// What a stream will be with certain books, before a byte of it is written.
#pragma once

#include <cstdint>
#include <memory>

#include "huffman_books.h"
#include "huffman_stream.h"

namespace laconic {

// Whether it takes words to write such codes: two at least, and not all equal.
bool in_words(const void* codes, std::int64_t count, int itemsize);

// To encode so many codes, cut into chunks; to be filled in by a plan.
HuffmanJob job_for(const void* codes, std::int64_t count, int itemsize);

void count_chunks(const HuffmanJob& job, int threads, SymbolTable* counts);

class StreamPlan {
public:
    // Of a job whose chunks are counted.
    StreamPlan(const HuffmanJob& job, const SymbolTable* counts, int threads);

    bool has_memory() const { return costs_ && book_of_ && offsets_; }

    // Gives every chunk the book that writes it in the fewest bits; `own`: the books are part of the stream.
    // False where a symbol has no word in any.
    bool use(const HuffmanBooks& books, bool own);

    std::int64_t size() const { return offsets_[job_.chunks * job_.sections]; }

    void write(std::uint8_t* stream);

private:
    std::int32_t* costs_with(int book) const { return costs_.get() + book * job_.chunks; }
    bool choose_book(std::int64_t chunk);
    void place_sections(std::int64_t at);
    std::int64_t bytes_of_words(std::int64_t chunk) const;
    void write_header(std::uint8_t* to) const;

    HuffmanJob job_;
    const SymbolTable* const counts_;
    const int threads_;
    const HuffmanBooks* books_ = nullptr;
    bool own_ = true;
    int first_symbol_[kMostBooks];
    std::unique_ptr<std::int32_t[]> costs_;  // of the chunks with each book, and of their extra bits
    std::unique_ptr<std::uint8_t[]> book_of_;
    std::unique_ptr<std::int64_t[]> offsets_;
};

}  // namespace laconic
