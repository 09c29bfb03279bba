// From a stream to codes. Its bytes may be anybody's: each is doubted before it is used.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "huffman.h"
#include "huffman_books.h"
#include "huffman_stream.h"

namespace laconic {
namespace {

// What is left to read.
struct Input {
    const std::uint8_t* at;
    std::size_t left;

    bool skip(std::size_t bytes) {
        if (bytes > left) return false;
        at += bytes;
        left -= bytes;
        return true;
    }
};

bool read_raw(const Input& in, void* codes, std::int64_t bytes) {
    if (in.left != static_cast<std::uint64_t>(bytes)) return false;
    if (bytes > 0) std::memcpy(codes, in.at, in.left);
    return true;
}

bool read_constant(const Input& in, std::uint8_t* codes, std::int64_t count, int itemsize) {
    if (count < 2 || in.left != static_cast<std::size_t>(itemsize)) return false;
    for (std::int64_t i = 0; i < count; ++i) std::memcpy(codes + i * itemsize, in.at, in.left);
    return true;
}

class StreamReader {
public:
    StreamReader(const Input& in, void* codes, std::int64_t count, int itemsize) : in_(in) {
        job_.stream = const_cast<std::uint8_t*>(in.at);
        job_.codes = codes;
        job_.count = count;
        job_.itemsize = itemsize;
        job_.sections = itemsize == 1 ? 1 : 2;
    }

    // The books are the stream's own, or those that are `shared`.
    bool read(Input* shared, int threads) {
        if (job_.count < 2 || !read_layout() || !read_books(shared ? *shared : in_) || !read_sizes()) return false;
        if (shared && shared->left > 0) return false;
        fill_tables();
        job_.book_of = book_of_.get();
        job_.offsets = offsets_.get();
        const auto decode = LACONIC_CHOOSE_KERNEL(huffman_decode);
        std::atomic<bool> sound{true};
        over_chunks(job_.chunks, job_.count, threads, [&](std::int64_t begin, std::int64_t end) {
            if (!decode(job_, begin, end)) sound = false;
        });
        return sound;
    }

private:
    bool read_layout() {
        if (in_.left == 0) return false;
        job_.chunk_log = *in_.at & 15;
        books_ = 1 + (*in_.at >> 4);
        if (job_.chunk_log < kLeastChunkLog || job_.chunk_log > kMostChunkLog || books_ > kMostBooks) return false;
        job_.chunks = chunks_of(job_.count, job_.chunk_log);
        return in_.skip(1) && static_cast<std::uint64_t>(job_.chunks) <= in_.left;  // before memory is asked for
    }

    bool read_books(Input& in) {
        entries_ = allocate<EntryTable>(books_);
        if (!entries_) return false;
        for (int k = 0; k < books_; ++k) {
            const std::size_t bytes = read_book_for(job_.itemsize, in.at, in.left, entries_[k].book);
            if (bytes == 0 || !in.skip(bytes)) return false;
        }
        return true;
    }

    // Of the books that are used.
    void fill_tables() {
        bool used[kMostBooks];
        int longest = 0;
        for (int k = 0; k < books_; ++k) {
            used[k] = std::memchr(book_of_.get(), k, static_cast<std::size_t>(job_.chunks)) != nullptr;
            if (used[k]) longest = std::max(longest, entries_[k].book.longest_word());
        }
        job_.window_bits = window_bits_for(longest);
        for (int k = 0; k < books_; ++k) {
            if (used[k]) entries_[k].fill(job_.window_bits);
        }
        job_.entries = entries_.get();
    }

    // Few codes are not worth a wide window, words that are long on average are: in a narrow one there is place for one
    // of them only.
    int window_bits_for(int longest) const {
        constexpr std::int64_t few = 16 * 1024;
        if (longest <= kLeastWindowBits && job_.count <= few) return kLeastWindowBits;
        return 2 * 8 * static_cast<std::int64_t>(in_.left) > kMaxWordBits * job_.count ? kMostWindowBits : kMaxWordBits;
    }

    // The sections lie one behind the other, and end where the stream does.
    bool read_sizes() {
        const std::int64_t sections = job_.chunks * job_.sections;
        const std::uint8_t* from = in_.at;
        if (!in_.skip(static_cast<std::size_t>(sections) * kSizeBytes)) return false;
        offsets_ = allocate<std::int64_t>(sections + 1);
        book_of_ = allocate<std::uint8_t>(job_.chunks);
        if (!offsets_ || !book_of_) return false;
        std::int64_t at = in_.at - job_.stream;
        const std::int64_t end = at + static_cast<std::int64_t>(in_.left);
        for (std::int64_t section = 0; section < sections; ++section, from += kSizeBytes) {
            std::uint16_t size;
            std::memcpy(&size, from, kSizeBytes);
            offsets_[section] = at;
            if (section % job_.sections == 0) {
                const int book = size >> kSizeBits;
                if (book >= books_) return false;
                book_of_[section / job_.sections] = static_cast<std::uint8_t>(book);
                size &= (1 << kSizeBits) - 1;
            }
            at += size;
        }
        offsets_[sections] = at;
        return at == end;
    }

    Input in_;
    HuffmanJob job_{};
    int books_ = 0;
    std::unique_ptr<EntryTable[]> entries_;
    std::unique_ptr<std::int64_t[]> offsets_;
    std::unique_ptr<std::uint8_t[]> book_of_;
};

}  // namespace

bool huffman_decode(const std::uint8_t* stream, std::size_t size, void* codes, std::int64_t count, int itemsize,
                    int threads, const std::uint8_t* book, std::size_t book_size) {
    if (size == 0 || count < 0) return false;
    const Input in{stream + 1, size - 1};
    Input shared{book, book_size};
    const auto mode = static_cast<HuffmanMode>(*stream);
    if (mode == HuffmanMode::shared) return StreamReader(in, codes, count, itemsize).read(&shared, threads);
    if (book_size > 0) return false;
    switch (mode) {
        case HuffmanMode::raw: return read_raw(in, codes, count * itemsize);
        case HuffmanMode::constant: return read_constant(in, static_cast<std::uint8_t*>(codes), count, itemsize);
        case HuffmanMode::words: return StreamReader(in, codes, count, itemsize).read(nullptr, threads);
        default: return false;
    }
}

}  // namespace laconic
