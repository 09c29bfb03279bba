// From codes to a stream: count, choose books, learn every size, and write everything to its place.
#include <algorithm>
#include <cstring>

#include "huffman.h"
#include "huffman_stream.h"

namespace laconic {
namespace {

// Fewer codes make smaller chunks: several are decoded at once even on one thread.
int chunk_log_for(std::int64_t count) {
    int log = kMostChunkLog;
    while (log > 10 && count >> log < 8) --log;
    return log;
}

// A book costs time and room of its own.
int books_for(std::int64_t count) { return count < 1 << 16 ? 1 : count < 1 << 19 ? 2 : kMostBooks; }

std::int64_t write_plain(HuffmanMode mode, const void* codes, std::int64_t bytes, std::uint8_t* stream) {
    *stream = static_cast<std::uint8_t>(mode);
    if (bytes > 0) std::memcpy(stream + 1, codes, static_cast<std::size_t>(bytes));
    return 1 + bytes;
}

// 1 + floor(log2(value)).
int bit_width(std::int64_t value) {
    int width = 0;
    for (; value > 0; value >>= 1) ++width;
    return width;
}

class StreamWriter {
public:
    StreamWriter(const HuffmanJob& job, int threads)
        : job_(job),
          threads_(threads),
          books_(books_for(job.count)),
          counts_(allocate<SymbolTable>(job.chunks)),
          costs_(allocate<std::int32_t>(job.chunks * (1 + kMostBooks))),
          order_(allocate<std::int64_t>(job.chunks)),
          book_of_(allocate<std::uint8_t>(job.chunks)),
          offsets_(allocate<std::int64_t>(job.chunks * job.sections + 1)) {}

    bool has_memory() const { return counts_ && costs_ && order_ && book_of_ && offsets_; }

    // The number of bytes; 0 where they would be more than `most`, and nothing was written.
    std::int64_t write(std::int64_t most) {
        const auto count = LACONIC_CHOOSE_KERNEL(huffman_count);
        over_chunks(job_, threads_, [&](std::int64_t begin, std::int64_t end) { count(job_, begin, end, counts_.get()); });
        sort_chunks();
        for (int k = 0; k < books_; ++k) make_book_of_group(k);
        for (std::int64_t chunk = 0; chunk < job_.chunks; ++chunk) choose_book(chunk);
        const std::int64_t size = place_sections();
        if (size > most) return 0;
        write_header();
        job_.words = words_;
        job_.book_of = book_of_.get();
        job_.offsets = offsets_.get();
        const auto encode = LACONIC_CHOOSE_KERNEL(huffman_encode);
        over_chunks(job_, threads_, [&](std::int64_t begin, std::int64_t end) { encode(job_, begin, end); });
        return size;
    }

private:
    // By what they would cost with about as many bits for a symbol as its frequency in all is worth.
    void sort_chunks() {
        for (std::int64_t chunk = 0; chunk < job_.chunks; ++chunk) order_[chunk] = chunk;
        if (books_ == 1) return;
        std::int64_t sums[kSymbols];
        sum_counts(0, job_.chunks, sums);
        SymbolTable cost;
        for (int symbol = 0; symbol < kSymbols; ++symbol) {
            cost.of[symbol] = static_cast<std::int16_t>(sums[symbol] == 0 ? 0 : bit_width(job_.count / sums[symbol]));
        }
        find_costs(cost, costs_.get());
        std::sort(order_.get(), order_.get() + job_.chunks, [this](std::int64_t a, std::int64_t b) {
            return costs_[a] != costs_[b] ? costs_[a] < costs_[b] : a < b;
        });
    }

    void sum_counts(std::int64_t begin, std::int64_t end, std::int64_t* sums) const {
        std::fill_n(sums, kSymbols, 0);
        LACONIC_CHOOSE_KERNEL(huffman_sum)(counts_.get(), order_.get() + begin, end - begin, sums);
    }

    void find_costs(const SymbolTable& cost, std::int32_t* costs) const {
        const auto kernel = LACONIC_CHOOSE_KERNEL(huffman_cost);
        over_chunks(job_, threads_, [&](std::int64_t begin, std::int64_t end) {
            kernel(counts_.get(), begin, end, cost, costs);
        });
    }

    std::int32_t* costs_with(int book) const { return costs_.get() + (1 + book) * job_.chunks; }

    void make_book_of_group(int k) {
        std::int64_t sums[kSymbols];
        sum_counts(job_.chunks * k / books_, job_.chunks * (k + 1) / books_, sums);
        book_[k] = make_book(sums);
        first_symbol_[k] = book_[k].first_symbol();
        words_[k] = WordTable(book_[k]);
        SymbolTable cost;
        for (int symbol = 0; symbol < kSymbols; ++symbol) {
            cost.of[symbol] = book_[k].lengths[symbol] == 0 ? kNotAtAnyCost : book_[k].lengths[symbol];
        }
        find_costs(cost, costs_with(k));
    }

    void choose_book(std::int64_t chunk) {
        int best = 0;
        for (int k = 1; k < books_; ++k) {
            if (costs_with(k)[chunk] < costs_with(best)[chunk]) best = k;
        }
        book_of_[chunk] = static_cast<std::uint8_t>(best);
    }

    std::int64_t place_sections() {
        header_bytes_ = 2 + job_.chunks * job_.sections * kSizeBytes;
        for (int k = 0; k < books_; ++k) header_bytes_ += book_bytes_[k] = write_book(book_[k], stored_[k]);
        if (job_.sections > 1) find_costs(cost_of_extra_bits(), costs_.get());
        std::int64_t at = header_bytes_, *offset = offsets_.get();
        for (std::int64_t chunk = 0; chunk < job_.chunks; ++chunk) {
            *offset++ = at;
            at += bytes_of_words(chunk);
            if (job_.sections == 1) continue;
            *offset++ = at;
            at += (costs_[chunk] + 7) / 8;
        }
        return *offset = at;
    }

    static SymbolTable cost_of_extra_bits() {
        SymbolTable cost;
        for (int symbol = 0; symbol < kSymbols; ++symbol) cost.of[symbol] = kExtraBits.of[symbol];
        return cost;
    }

    // None where all of the chunk is the book's first symbol.
    std::int64_t bytes_of_words(std::int64_t chunk) const {
        const int book = book_of_[chunk], first = first_symbol_[book];
        const std::int64_t codes = std::min(job_.count - (chunk << job_.chunk_log), std::int64_t{1} << job_.chunk_log);
        return counts_[chunk].of[first] == codes ? 0 : (costs_with(book)[chunk] + 7) / 8;
    }

    void write_header() {
        std::uint8_t* to = job_.stream;
        *to++ = static_cast<std::uint8_t>(HuffmanMode::words);
        *to++ = static_cast<std::uint8_t>(job_.chunk_log | (books_ - 1) << 4);
        for (int k = 0; k < books_; to += book_bytes_[k++]) std::memcpy(to, stored_[k], book_bytes_[k]);
        for (std::int64_t section = 0; section < job_.chunks * job_.sections; ++section, to += kSizeBytes) {
            const bool words = section % job_.sections == 0;
            const int book = words ? book_of_[section / job_.sections] : 0;
            const auto size = static_cast<std::uint16_t>(offsets_[section + 1] - offsets_[section] + (book << kSizeBits));
            std::memcpy(to, &size, kSizeBytes);
        }
    }

    HuffmanJob job_;
    const int threads_, books_;
    std::unique_ptr<SymbolTable[]> counts_;
    std::unique_ptr<std::int32_t[]> costs_;
    std::unique_ptr<std::int64_t[]> order_;
    std::unique_ptr<std::uint8_t[]> book_of_;
    std::unique_ptr<std::int64_t[]> offsets_;
    HuffmanBook book_[kMostBooks];
    int first_symbol_[kMostBooks];
    WordTable words_[kMostBooks];
    std::uint8_t stored_[kMostBooks][kMaxBookBytes];
    std::size_t book_bytes_[kMostBooks];
    std::int64_t header_bytes_ = 0;
};

}  // namespace

std::int64_t huffman_capacity(std::int64_t count, int itemsize) { return 1 + count * itemsize; }

std::int64_t huffman_encode(const void* codes, std::int64_t count, int itemsize, std::uint8_t* stream, int threads) {
    const std::int64_t size = count * itemsize;
    const auto* bytes = static_cast<const std::uint8_t*>(codes);
    if (count < 2) return write_plain(HuffmanMode::raw, codes, size, stream);
    if (std::memcmp(bytes, bytes + itemsize, static_cast<std::size_t>(size - itemsize)) == 0) {
        return write_plain(HuffmanMode::constant, codes, itemsize, stream);
    }
    HuffmanJob job{};
    job.codes = const_cast<void*>(codes);
    job.count = count;
    job.itemsize = itemsize;
    job.chunk_log = chunk_log_for(count);
    job.chunks = chunks_of(count, job.chunk_log);
    job.sections = itemsize == 1 ? 1 : 2;
    job.stream = stream;
    StreamWriter writer(job, threads);
    if (!writer.has_memory()) return -1;
    const std::int64_t written = writer.write(size);
    return written > 0 ? written : write_plain(HuffmanMode::raw, codes, size, stream);
}

}  // namespace laconic
