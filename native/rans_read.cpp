// From a stream to codes. Its bytes may be anybody's: each is doubted before it is used.
#include <atomic>
#include <cstring>

#include "rans.h"
#include "rans_book.h"
#include "rans_stream.h"

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

    // Seven bits to a byte, four bytes at most.
    bool take_size(std::int64_t& size) {
        size = 0;
        for (int shift = 0; shift < 28 && left > 0; shift += 7) {
            const std::uint8_t byte = *at;
            skip(1);
            size |= static_cast<std::int64_t>(byte & 127) << shift;
            if (byte < 128) return true;
        }
        return false;
    }
};

// A book laid out to decode with.
class DecodeBook {
public:
    // The number of bytes that it takes; 0 where there is none, or no memory.
    std::size_t read(const std::uint8_t* from, std::size_t size, int itemsize) {
        const std::size_t used = read_rans_book(from, size, itemsize, book_);
        if (used == 0) return 0;
        const std::int64_t slots = std::int64_t{1} << book_.bits;
        table_.small = book_.is_small();
        entries_ = rans_allocate<std::uint32_t>(slots);
        if (!table_.small) symbols_ = rans_allocate<std::uint16_t>(slots + 1);
        if (!entries_ || (!table_.small && !symbols_)) return 0;
        table_.entries = entries_.get();
        table_.symbols = symbols_.get();
        book_.fill(table_);
        return used;
    }

    void set(RansJob& job) const {
        job.direct = book_.direct;
        job.bits = book_.bits;
        job.has_extra = book_.has_extra;
        job.decode = &table_;
    }

private:
    RansBook book_;
    RansDecodeTable table_{};
    std::unique_ptr<std::uint32_t[]> entries_;
    std::unique_ptr<std::uint16_t[]> symbols_;
};

bool read_raw(const Input& in, const RansStream& one, int itemsize) {
    if (in.left != static_cast<std::uint64_t>(one.count) * static_cast<unsigned>(itemsize)) return false;
    if (in.left > 0) std::memcpy(one.codes, in.at, in.left);
    return true;
}

bool read_constant(const Input& in, const RansStream& one, int itemsize) {
    if (one.count < 2 || in.left != static_cast<std::size_t>(itemsize)) return false;
    auto* codes = static_cast<std::uint8_t*>(one.codes);
    if (itemsize == 1) {
        std::memset(codes, *in.at, static_cast<std::size_t>(one.count));
        return true;
    }
    for (std::int64_t i = 0; i < one.count; ++i) std::memcpy(codes + i * itemsize, in.at, in.left);
    return true;
}

// The chunks' sections lie one behind the other, and end where the stream does.
bool place_chunks(Input in, const RansJob& job, std::int64_t* offsets) {
    std::int64_t words = 0, extra = 0, sum = 0;
    for (std::int64_t chunk = 0; chunk < job.chunks; ++chunk) {
        if (chunk < job.chunks - 1 && !in.take_size(words)) return false;
        if (job.has_extra && !in.take_size(extra)) return false;
        offsets[2 * chunk] = words;
        offsets[2 * chunk + 1] = extra;
        sum += (chunk < job.chunks - 1 ? words : 0) + extra;
    }
    if (sum > static_cast<std::int64_t>(in.left)) return false;
    offsets[2 * job.chunks - 2] = static_cast<std::int64_t>(in.left) - sum;
    std::int64_t at = in.at - job.stream;
    for (std::int64_t section = 0; section < 2 * job.chunks; ++section) {
        const std::int64_t bytes = offsets[section];
        offsets[section] = at;
        at += bytes;
    }
    offsets[2 * job.chunks] = at;
    return true;
}

bool read_chunks(const Input& in, const RansStream& one, int itemsize, int lanes_log, const DecodeBook& book,
                 int threads) {
    constexpr std::int64_t few = 4;
    RansJob job{};
    job.codes = one.codes;
    job.stream = in.at;
    job.lanes_log = lanes_log;
    set_chunks(job, one.count, itemsize);
    book.set(job);
    if (static_cast<std::uint64_t>(job.chunks - 1) > in.left) return false;  // before memory is asked for
    std::int64_t some[2 * few + 1];
    const auto many = job.chunks > few ? rans_allocate<std::int64_t>(2 * job.chunks + 1) : nullptr;
    if (job.chunks > few && !many) return false;
    std::int64_t* offsets = many ? many.get() : some;
    if (!place_chunks(in, job, offsets)) return false;
    job.offsets = offsets;
    const auto decode = LACONIC_CHOOSE_KERNEL(rans_decode);
    std::atomic<bool> sound{true};
    over_ranges(job.chunks, threads, [&](std::int64_t begin, std::int64_t end) {
        if (!decode(job, begin, end)) sound = false;
    });
    return sound;
}

// `shared` where there is one, and then of no other use.
bool read_stream(const RansStream& one, int itemsize, int threads, const DecodeBook* shared) {
    if (one.size == 0 || one.count < 0) return false;
    Input in{one.stream + 1, one.size - 1};
    const int head = *one.stream, lanes_log = head >> 2;
    const auto mode = static_cast<RansMode>(head & 3);
    if ((mode == RansMode::shared) != (shared != nullptr)) return false;
    if (mode == RansMode::raw) return lanes_log == 0 && read_raw(in, one, itemsize);
    if (mode == RansMode::constant) return lanes_log == 0 && read_constant(in, one, itemsize);
    if (lanes_log > kRansMostLanesLog || one.count < 2) return false;
    if (mode == RansMode::shared) return read_chunks(in, one, itemsize, lanes_log, *shared, threads);
    DecodeBook own;
    const std::size_t used = own.read(in.at, in.left, itemsize);
    return used > 0 && in.skip(used) && read_chunks(in, one, itemsize, lanes_log, own, threads);
}

}  // namespace

bool rans_decode(const std::uint8_t* stream, std::size_t size, void* codes, std::int64_t count, int itemsize,
                 int threads, const std::uint8_t* book, std::size_t book_size) {
    const RansStream one{stream, size, codes, count};
    return rans_decode_many(&one, 1, itemsize, threads, book, book_size);
}

bool rans_decode_many(const RansStream* batch, std::int64_t size, int itemsize, int threads,
                      const std::uint8_t* book, std::size_t book_size) {
    constexpr std::int64_t worth_threads = 256 * 1024;
    DecodeBook shared;
    if (book_size > 0 && shared.read(book, book_size, itemsize) != book_size) return false;
    const DecodeBook* given = book_size > 0 ? &shared : nullptr;
    if (size == 1) return read_stream(batch[0], itemsize, batch[0].count < worth_threads ? 1 : threads, given);
    std::int64_t codes = 0;
    for (std::int64_t i = 0; i < size; ++i) codes += batch[i].count;
    std::atomic<bool> sound{true};
    over_ranges(size, codes < worth_threads ? 1 : threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            if (!read_stream(batch[i], itemsize, 1, given)) sound = false;
        }
    });
    return sound;
}

}  // namespace laconic
