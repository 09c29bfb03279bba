#include "codes.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <vector>

#include "threads.h"

namespace laconic {

void add_place(Places& places, std::int64_t place) {
    if (places.count == places.capacity) {
        const std::int64_t capacity = std::max<std::int64_t>(64, 2 * places.capacity);
        void* grown = std::realloc(places.data, capacity * sizeof(std::int64_t));
        if (grown == nullptr) {
            places.failed = true;  // kernels do not throw: whoever reads the places does
            return;
        }
        places.data = static_cast<std::int64_t*>(grown);
        places.capacity = capacity;
    }
    places.data[places.count++] = place;
}

namespace {

constexpr std::int64_t kCodesWorthThreads = 64 * 1024;
constexpr std::uint8_t kRaw = 0, kPacked = 1;

void check(const CodeJob& job) {
    const bool sound = job.count > 0 && job.width > 0 && job.height > 0 && job.depth > 0 && job.scope > 0 &&
                       0 <= job.dims && job.dims <= 3 && job.count % (job.width * job.height * job.depth) == 0 &&
                       (job.code_bytes == 1 || job.code_bytes == 2 || job.code_bytes == 4);
    if (!sound) throw std::invalid_argument("codes: sizes that contradict each other");
}

// Of each thread its own, kept for the next call: allocating costs more than the work on a small tensor.
Scratch scratch_for(const CodeJob& job) {
    thread_local std::vector<unsigned char> memory;
    const auto padded = [](std::int64_t bytes) { return (bytes + 2 * kSlack + 63) / 64 * 64; };
    const std::int64_t longest = job.dims >= 2 ? job.width : std::min<std::int64_t>(job.width, kSegment);
    const std::int64_t line = padded(longest * job.code_bytes), chunk = padded(kChunkCodes * job.code_bytes);
    const std::int64_t plane = job.dims == 3 ? padded(job.width * job.height * job.code_bytes) : 0;
    const std::size_t bytes = 2 * line + plane + 2 * chunk;
    if (memory.size() < bytes) memory.resize(bytes);
    unsigned char* at = memory.data();
    std::memset(at, 0, kSlack);  // what lies west of a line's first code
    std::memset(at + line, 0, kSlack);
    Scratch scratch;
    scratch.lines[0] = at + kSlack;
    scratch.lines[1] = at + line + kSlack;
    scratch.plane = at + 2 * line + kSlack;
    scratch.chunk = at + 2 * line + plane;
    scratch.spare = at + 2 * line + plane + chunk;
    return scratch;
}

std::int64_t chunks_in(const CodeJob& job) { return (job.count + kChunkCodes - 1) / kChunkCodes; }

// More than any chunk takes.
std::int64_t chunk_capacity(const CodeJob& job) {
    constexpr std::int64_t blocks = kChunkCodes / kBlockCodes;
    return blocks / 8 + blocks + kChunkCodes * job.code_bytes;
}

struct Range {
    std::int64_t chunk, length;  // the chunk it begins with, and how many bytes it gave
    Places exceptions;
};

struct Encoding {
    const CodeJob& job;
    std::uint8_t* out;  // where chunks go, each as far from the first as if all were of the greatest length
    std::uint32_t* sizes;
    std::int64_t grain;
    std::vector<Range> ranges;
};

void encode_range(void* context, std::int64_t begin, std::int64_t end) {
    auto& encoding = *static_cast<Encoding*>(context);
    const CodeJob& job = encoding.job;
    Range& range = encoding.ranges[begin / encoding.grain];
    range.chunk = begin;
    std::uint8_t* out = encoding.out == nullptr ? nullptr : encoding.out + begin * chunk_capacity(job);
    std::uint32_t* sizes = encoding.sizes == nullptr ? nullptr : encoding.sizes + begin;
    range.length = LACONIC_CHOOSE_KERNEL(encode_codes)(job, begin * kChunkCodes,
                                                       std::min(end * kChunkCodes, job.count), scratch_for(job), sizes,
                                                       out, range.exceptions);
}

// Ranges of whole chunks; long ones where a range must begin with what foretells it.
std::int64_t grain_of(const CodeJob& job, int threads) {
    const std::int64_t chunks = chunks_in(job), each = (chunks + threads * 4 - 1) / (threads * 4);
    const std::int64_t foretold = job.dims == 3 ? job.width * job.height * kSlabPlanes / kChunkCodes
                                  : job.dims == 2 ? job.width * kSlabRows / 4 / kChunkCodes : 1;
    return std::clamp<std::int64_t>(std::max(each, foretold), 1, std::max<std::int64_t>(1, (chunks + 1) / 2));
}

// Fills `sizes` and the chunks behind them where `out` is given; gives their length.
std::int64_t encode_all(const CodeJob& job, std::uint8_t* out, std::uint32_t* sizes, int threads, Places& exceptions) {
    const std::int64_t chunks = chunks_in(job);
    if (job.count < kCodesWorthThreads) threads = 1;
    Encoding encoding{job, out, sizes, threads == 1 ? chunks : grain_of(job, threads), {}};
    encoding.ranges.resize((chunks + encoding.grain - 1) / encoding.grain);
    parallel_for(chunks, encoding.grain, threads, encode_range, &encoding);
    std::int64_t length = 0;
    for (Range& range : encoding.ranges) {
        if (out != nullptr && range.chunk > 0) std::memmove(out + length, out + range.chunk * chunk_capacity(job), range.length);
        length += range.length;
        for (std::int64_t i = 0; i < range.exceptions.count; ++i) add_place(exceptions, range.exceptions.data[i]);
        exceptions.failed |= range.exceptions.failed;
        std::free(range.exceptions.data);
    }
    return length;
}

// The runs of elements that decode on their own, as prediction starts anew with each.
struct Units {
    std::int64_t outer, inner;  // elements in what they divide, and in one (the last of each may be shorter)
    std::int64_t per_outer, count;

    explicit Units(const CodeJob& job) {
        const std::int64_t lines = job.dims == 3 ? job.depth : job.dims == 2 ? job.height : job.width;
        const std::int64_t restart = job.dims == 3 ? kSlabPlanes : job.dims == 2 ? kSlabRows : kSegment;
        const std::int64_t line = job.dims == 3 ? job.width * job.height : job.dims == 2 ? job.width : 1;
        outer = lines * line;
        inner = restart * line;
        per_outer = (lines + restart - 1) / restart;
        count = job.count / outer * per_outer;
    }
    std::int64_t start(std::int64_t unit) const { return unit / per_outer * outer + unit % per_outer * inner; }
};

struct Decoding {
    const CodeJob& job;
    const Units units;
    std::atomic<bool> sound{true};
};

void decode_range(void* context, std::int64_t begin, std::int64_t end) {
    auto& decoding = *static_cast<Decoding*>(context);
    const std::int64_t from = decoding.units.start(begin), to = decoding.units.start(end);
    const CodeJob& job = decoding.job;
    if (!LACONIC_CHOOSE_KERNEL(decode_codes)(job, from, to, scratch_for(job))) decoding.sound = false;
}

bool decode_all(const CodeJob& job, int threads) {
    Decoding decoding{job, Units(job)};
    const std::int64_t units = decoding.units.count;
    if (job.count < kCodesWorthThreads) threads = 1;
    const std::int64_t least = std::max<std::int64_t>(1, 4 * kChunkCodes * units / job.count);
    const std::int64_t grain = threads == 1 ? units : std::max(least, units / (threads * 8));
    parallel_for(units, grain, threads, decode_range, &decoding);
    return decoding.sound;
}

// Where each chunk begins and ends in a stream; false where its table does not add up.
bool read_offsets(const CodeJob& job, const std::uint8_t* stream, std::int64_t size, std::vector<std::int64_t>& offsets) {
    const std::int64_t chunks = chunks_in(job);
    if (size < 1 + 4 * chunks) return false;
    offsets.resize(chunks + 1);
    offsets[0] = 1 + 4 * chunks;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        std::uint32_t length;
        std::memcpy(&length, stream + 1 + 4 * chunk, 4);
        offsets[chunk + 1] = offsets[chunk] + length;
    }
    return offsets[chunks] == size;
}

}  // namespace

std::int64_t encode_stream(CodeJob job, bool packed, std::uint8_t* stream, int threads, Places& exceptions) {
    check(job);
    if (!packed) {
        encode_all(job, nullptr, nullptr, threads, exceptions);
        return 0;
    }
    const std::int64_t chunks = chunks_in(job), raw = 1 + job.count * job.code_bytes, head = 1 + 4 * chunks;
    std::vector<std::uint32_t> sizes(chunks);
    const std::int64_t length = head + encode_all(job, stream + head, sizes.data(), threads, exceptions);
    if (length > raw) {
        Places again;  // the same ones
        job.codes_out = stream + 1;
        stream[0] = kRaw;
        encode_all(job, nullptr, nullptr, threads, again);
        std::free(again.data);
        return raw;
    }
    stream[0] = kPacked;
    std::memcpy(stream + 1, sizes.data(), 4 * chunks);
    return length;
}

bool decode_stream(CodeJob job, const std::uint8_t* stream, std::int64_t size, int threads) {
    check(job);
    std::vector<std::int64_t> offsets;
    if (stream == nullptr) return decode_all(job, threads);
    if (size == 1 + job.count * job.code_bytes && stream[0] == kRaw) {
        job.codes_in = stream + 1;
    } else if (size > 0 && stream[0] == kPacked && read_offsets(job, stream, size, offsets)) {
        job.packed_in = stream;
        job.offsets = offsets.data();
    } else {
        return false;
    }
    return decode_all(job, threads);
}

}  // namespace laconic
