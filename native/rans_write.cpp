// From codes to a stream: count, choose a book, and write all chunks, then what stands in front of them.
#include <algorithm>
#include <cstring>

#include "rans_plan.h"

namespace laconic {
namespace {

constexpr std::int64_t kCodesWorthThreads = 256 * 1024;
constexpr std::int64_t kBeyond = 64;  // bytes that vectors may write beyond their place

struct SharedBook {
    RansBook book;
    RansEncodeTable table;
};

// What it takes to write one stream after another.
struct Desk {
    RansCounts counts;
    RansBook own;
    RansStored stored;
    RansEncodeTable table;
};

std::int64_t write_plain(RansMode mode, const void* codes, std::int64_t bytes, std::uint8_t* stream) {
    *stream = static_cast<std::uint8_t>(mode);
    if (bytes > 0) std::memcpy(stream + 1, codes, static_cast<std::size_t>(bytes));
    return 1 + bytes;
}

// Seven bits to a byte, the lowest first; the highest bit says that more follow.
std::uint8_t* write_size(std::int64_t size, std::uint8_t* to) {
    for (; size >= 128; size >>= 7) *to++ = static_cast<std::uint8_t>(size | 128);
    *to++ = static_cast<std::uint8_t>(size);
    return to;
}

int bytes_of_size(std::int64_t size) { return size < 128 ? 1 : 1 + bytes_of_size(size >> 7); }

class ChunkWriter {
public:
    ChunkWriter(const RansJob& job, const RansBook& book, const RansEncodeTable& table, int lanes_log) : job_(job) {
        job_.direct = book.direct;
        job_.bits = book.bits;
        job_.has_extra = book.has_extra;
        job_.lanes_log = lanes_log;
        job_.encode = &table;
        job_.words_region = 2 * job.length + (4 << lanes_log) + kBeyond;
        job_.region = job_.words_region + (book.has_extra ? 4 * job.length : 0) + kBeyond;
        scratch_ = rans_allocate<std::uint8_t>(job_.chunks * job_.region);
        bytes_ = rans_allocate<std::int64_t>(2 * job_.chunks);
    }

    bool has_memory() const { return scratch_ && bytes_; }

    // All of what follows the book.
    std::int64_t run(int threads) {
        job_.scratch = scratch_.get();
        job_.words_bytes = bytes_.get();
        job_.extra_bytes = bytes_.get() + job_.chunks;
        const auto encode = LACONIC_CHOOSE_KERNEL(rans_encode);
        over_ranges(job_.chunks, threads, [&](std::int64_t begin, std::int64_t end) { encode(job_, begin, end); });
        std::int64_t size = 0;
        over_sizes([&](std::int64_t bytes) { size += bytes_of_size(bytes); });
        for (std::int64_t i = 0; i < (job_.has_extra ? 2 : 1) * job_.chunks; ++i) size += bytes_[i];
        return size;
    }

    void write(std::uint8_t* to) const {
        over_sizes([&](std::int64_t bytes) { to = write_size(bytes, to); });
        for (std::int64_t chunk = 0; chunk < job_.chunks; ++chunk) {
            const std::uint8_t* words_end = job_.scratch + chunk * job_.region + job_.words_region;
            to = copy(words_end - job_.words_bytes[chunk], job_.words_bytes[chunk], to);
            if (job_.has_extra) to = copy(words_end, job_.extra_bytes[chunk], to);
        }
    }

private:
    static std::uint8_t* copy(const std::uint8_t* from, std::int64_t bytes, std::uint8_t* to) {
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
        return to + bytes;
    }

    // Those that are stored: the last chunk's words end where its extra bits begin.
    template <class Body>
    void over_sizes(Body body) const {
        for (std::int64_t chunk = 0; chunk < job_.chunks; ++chunk) {
            if (chunk < job_.chunks - 1) body(job_.words_bytes[chunk]);
            if (job_.has_extra) body(job_.extra_bytes[chunk]);
        }
    }

    RansJob job_;
    std::unique_ptr<std::uint8_t[]> scratch_;
    std::unique_ptr<std::int64_t[]> bytes_;
};

// With the book that takes fewer bytes; raw where that takes fewer still.
std::int64_t write_words(const RansCodes& codes, int itemsize, const SharedBook* shared, Desk& desk,
                         std::uint8_t* stream, int threads) {
    RansJob job{};
    job.codes = const_cast<void*>(codes.codes);
    set_chunks(job, codes.count, itemsize);
    desk.counts.fill(job, threads);
    RansPlan plan = plan_own(desk.counts, itemsize, job.chunks, desk.own, desk.stored);
    const RansPlan other = shared ? plan_shared(desk.counts, itemsize, job.chunks, shared->book) : RansPlan{};
    const bool share = other.possible && other.estimate() < plan.estimate();
    if (share) plan = other;
    const std::int64_t size = codes.count * itemsize;
    if (plan.estimate() > size) return write_plain(RansMode::raw, codes.codes, size, stream);
    if (!share) desk.own.fill(desk.table);
    ChunkWriter writer(job, share ? shared->book : desk.own, share ? shared->table : desk.table, plan.lanes_log());
    if (!writer.has_memory()) return -1;
    const std::int64_t head = 1 + plan.stored, total = head + writer.run(threads);
    if (total > size) return write_plain(RansMode::raw, codes.codes, size, stream);
    *stream = static_cast<std::uint8_t>(static_cast<int>(share ? RansMode::shared : RansMode::words) |
                                        plan.lanes_log() << 2);
    if (!share) std::memcpy(stream + 1, desk.stored.bytes, desk.stored.size);
    writer.write(stream + head);
    return total;
}

std::int64_t write_stream(const RansCodes& codes, int itemsize, const SharedBook* shared, Desk& desk,
                          std::uint8_t* stream, int threads) {
    const std::int64_t size = codes.count * itemsize;
    if (codes.count < 2) return write_plain(RansMode::raw, codes.codes, size, stream);
    if (!rans_in_words(codes, itemsize)) return write_plain(RansMode::constant, codes.codes, itemsize, stream);
    return write_words(codes, itemsize, shared, desk, stream, size < kCodesWorthThreads ? 1 : threads);
}

// The bytes of all streams, each written at the end of the one before, or a negative number.
std::int64_t write_range(const RansCodes* batch, std::int64_t size, int itemsize, const SharedBook* shared,
                         std::uint8_t* streams, std::int64_t* lengths, int threads) {
    const std::unique_ptr<Desk> desk(new (std::nothrow) Desk);
    if (!desk) return -1;
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < size; ++i) {
        lengths[i] = write_stream(batch[i], itemsize, shared, *desk, streams + total, threads);
        if (lengths[i] < 0) return -1;
        total += lengths[i];
    }
    return total;
}

// Each range of tensors where its streams end at the latest, and then closer together.
std::int64_t write_side_by_side(const RansCodes* batch, std::int64_t size, int itemsize, const SharedBook* shared,
                                std::uint8_t* streams, std::int64_t* lengths, int threads) {
    const auto places = rans_allocate<std::int64_t>(size + 1);
    if (!places) return -1;
    places[0] = 0;
    for (std::int64_t i = 0; i < size; ++i) places[i + 1] = places[i] + rans_capacity(batch[i].count, itemsize);
    over_ranges(size, threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t done = write_range(batch + i, 1, itemsize, shared, streams + places[i], lengths + i, 1);
            if (done < 0) lengths[i] = done;
        }
    });
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < size; ++i) {
        if (lengths[i] < 0) return -1;
        std::memmove(streams + total, streams + places[i], static_cast<std::size_t>(lengths[i]));
        total += lengths[i];
    }
    return total;
}

bool are_many_small(const RansCodes* batch, std::int64_t size, int itemsize) {
    std::int64_t bytes = 0;
    for (std::int64_t i = 0; i < size; ++i) bytes += batch[i].count * itemsize;
    return size > 1 && bytes >= kCodesWorthThreads && bytes / size < 8 * kCodesWorthThreads;
}

}  // namespace

std::int64_t rans_capacity(std::int64_t count, int itemsize) { return 1 + count * itemsize; }

std::int64_t rans_encode(const void* codes, std::int64_t count, int itemsize, std::uint8_t* stream, int threads,
                         const std::uint8_t* book, std::size_t book_size) {
    const RansCodes one{codes, count};
    std::int64_t length;
    return rans_encode_many(&one, 1, itemsize, stream, &length, threads, book, book_size);
}

std::int64_t rans_encode_many(const RansCodes* batch, std::int64_t size, int itemsize, std::uint8_t* streams,
                              std::int64_t* lengths, int threads, const std::uint8_t* book, std::size_t book_size) {
    std::unique_ptr<SharedBook> shared;
    if (book_size > 0) {
        shared.reset(new (std::nothrow) SharedBook);
        if (!shared) return -1;
        if (read_rans_book(book, book_size, itemsize, shared->book) != book_size) return -2;
        shared->book.fill(shared->table);
    }
    const auto write = threads > 1 && are_many_small(batch, size, itemsize) ? write_side_by_side : write_range;
    return write(batch, size, itemsize, shared.get(), streams, lengths, threads);
}

}  // namespace laconic
