#include "huffman_plan.h"

#include <algorithm>
#include <cstring>

namespace laconic {
namespace {

// Fewer codes make smaller chunks: several are decoded at once even on one thread.
int chunk_log_for(std::int64_t count) {
    int log = kMostChunkLog;
    while (log > 10 && count >> log < 8) --log;
    return log;
}

SymbolTable cost_of_words(const HuffmanBook& book) {
    SymbolTable cost;
    for (int symbol = 0; symbol < kSymbols; ++symbol) {
        cost.of[symbol] = book.lengths[symbol] == 0 ? kNotAtAnyCost : book.lengths[symbol];
    }
    return cost;
}

SymbolTable cost_of_extra_bits() {
    SymbolTable cost;
    for (int symbol = 0; symbol < kSymbols; ++symbol) cost.of[symbol] = kExtraBits.of[symbol];
    return cost;
}

}  // namespace

bool in_words(const void* codes, std::int64_t count, int itemsize) {
    const auto* bytes = static_cast<const std::uint8_t*>(codes);
    return count > 1 && std::memcmp(bytes, bytes + itemsize, static_cast<std::size_t>((count - 1) * itemsize)) != 0;
}

HuffmanJob job_for(const void* codes, std::int64_t count, int itemsize) {
    HuffmanJob job{};
    job.codes = const_cast<void*>(codes);
    job.count = count;
    job.itemsize = itemsize;
    job.chunk_log = chunk_log_for(count);
    job.chunks = chunks_of(count, job.chunk_log);
    job.sections = itemsize == 1 ? 1 : 2;
    return job;
}

void count_chunks(const HuffmanJob& job, int threads, SymbolTable* counts) {
    const auto count = LACONIC_CHOOSE_KERNEL(huffman_count);
    over_chunks(job.chunks, job.count, threads, [&](std::int64_t begin, std::int64_t end) {
        count(job, begin, end, counts);
    });
}

StreamPlan::StreamPlan(const HuffmanJob& job, const SymbolTable* counts, int threads)
    : job_(job),
      counts_(counts),
      threads_(threads),
      costs_(allocate<std::int32_t>(job.chunks * (kMostBooks + 1))),
      book_of_(allocate<std::uint8_t>(job.chunks)),
      offsets_(allocate<std::int64_t>(job.chunks * job.sections + 1)) {}

bool StreamPlan::use(const HuffmanBooks& books, bool own) {
    books_ = &books;
    own_ = own;
    const CountedChunks counted{counts_, job_.chunks, job_.count};
    for (int book = 0; book < books.size; ++book) {
        first_symbol_[book] = books.of[book].first_symbol();
        find_costs(counted, cost_of_words(books.of[book]), threads_, costs_with(book));
    }
    for (std::int64_t chunk = 0; chunk < job_.chunks; ++chunk) {
        if (!choose_book(chunk)) return false;
    }
    if (job_.sections > 1) find_costs(counted, cost_of_extra_bits(), threads_, costs_with(kMostBooks));
    const std::size_t stored = own ? books.bytes : 0;
    place_sections(2 + static_cast<std::int64_t>(stored) + job_.chunks * job_.sections * kSizeBytes);
    return true;
}

bool StreamPlan::choose_book(std::int64_t chunk) {
    int best = 0;
    for (int book = 1; book < books_->size; ++book) {
        if (costs_with(book)[chunk] < costs_with(best)[chunk]) best = book;
    }
    book_of_[chunk] = static_cast<std::uint8_t>(best);
    return costs_with(best)[chunk] != kImpossible;
}

void StreamPlan::place_sections(std::int64_t at) {
    std::int64_t* offset = offsets_.get();
    for (std::int64_t chunk = 0; chunk < job_.chunks; ++chunk) {
        *offset++ = at;
        at += bytes_of_words(chunk);
        if (job_.sections == 1) continue;
        *offset++ = at;
        at += (costs_with(kMostBooks)[chunk] + 7) / 8;
    }
    *offset = at;
}

// None where all of the chunk is the book's first symbol.
std::int64_t StreamPlan::bytes_of_words(std::int64_t chunk) const {
    const int book = book_of_[chunk], first = first_symbol_[book];
    const std::int64_t codes = std::min(job_.count - (chunk << job_.chunk_log), std::int64_t{1} << job_.chunk_log);
    return counts_[chunk].of[first] == codes ? 0 : (costs_with(book)[chunk] + 7) / 8;
}

void StreamPlan::write(std::uint8_t* stream) {
    write_header(stream);
    WordTable words[kMostBooks];
    for (int book = 0; book < books_->size; ++book) words[book] = WordTable(books_->of[book]);
    job_.stream = stream;
    job_.words = words;
    job_.book_of = book_of_.get();
    job_.offsets = offsets_.get();
    const auto encode = LACONIC_CHOOSE_KERNEL(huffman_encode);
    over_chunks(job_.chunks, job_.count, threads_, [&](std::int64_t begin, std::int64_t end) {
        encode(job_, begin, end);
    });
}

void StreamPlan::write_header(std::uint8_t* to) const {
    *to++ = static_cast<std::uint8_t>(own_ ? HuffmanMode::words : HuffmanMode::shared);
    *to++ = static_cast<std::uint8_t>(job_.chunk_log | (books_->size - 1) << 4);
    if (own_) {
        std::memcpy(to, books_->stored, books_->bytes);
        to += books_->bytes;
    }
    for (std::int64_t section = 0; section < job_.chunks * job_.sections; ++section, to += kSizeBytes) {
        const bool words = section % job_.sections == 0;
        const int book = words ? book_of_[section / job_.sections] : 0;
        const auto size = static_cast<std::uint16_t>(offsets_[section + 1] - offsets_[section] + (book << kSizeBits));
        std::memcpy(to, &size, kSizeBytes);
    }
}

}  // namespace laconic
