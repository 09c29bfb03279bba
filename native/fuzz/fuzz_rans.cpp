// Whatever bytes come, the range decoder neither reads nor writes beyond what it is given; and what the encoder wrote
// comes back, alone or among others, with books of their own or a shared one.
//
//   | 4 bytes: what to do, and how many codes | a stream, or a length, a book and a stream, or codes |
#include "../rans.h"

#include <vector>

#include "fuzz.h"

using namespace laconic;

namespace {

enum class Way { decode, decode_shared, encode, encode_many };

struct Task {
    int itemsize, threads;
    Way way;
    std::int64_t count;

    explicit Task(const std::uint8_t* head)
        : itemsize(1 << head[0] % 3),
          threads(1 + (head[0] >> 2 & 1)),
          way(static_cast<Way>(head[0] >> 3 & 3)),
          count(head[1] | head[2] << 8 | (head[3] == 2 ? 1 << 17 : 0)) {}  // rarely more than a chunk
};

void decode(const Task& task, const std::uint8_t* data, std::int64_t size) {
    const Memory stream = filled_with(data, size, size), codes = memory_of(task.count * task.itemsize);
    rans_decode(stream.get(), size, codes.get(), task.count, task.itemsize, task.threads);
}

// The first byte says how long the book is.
void decode_shared(const Task& task, const std::uint8_t* data, std::int64_t size) {
    if (size < 1) return;
    const std::int64_t book_size = std::min<std::int64_t>(*data++, --size);
    const Memory book = filled_with(data, book_size, book_size), codes = memory_of(task.count * task.itemsize);
    const Memory stream = filled_with(data + book_size, size - book_size, size - book_size);
    rans_decode(stream.get(), size - book_size, codes.get(), task.count, task.itemsize, task.threads, book.get(),
                book_size);
}

void encode(const Task& task, const std::uint8_t* data, std::int64_t size) {
    const std::int64_t bytes = task.count * task.itemsize, capacity = rans_capacity(task.count, task.itemsize);
    const Memory codes = filled_with(data, size, bytes), stream = memory_of(capacity), back = memory_of(bytes);
    const std::int64_t length = rans_encode(codes.get(), task.count, task.itemsize, stream.get(), task.threads);
    require(0 <= length && length <= capacity, "a stream longer than promised");
    const Memory tight = filled_with(stream.get(), length, length);
    require(rans_decode(tight.get(), length, back.get(), task.count, task.itemsize, 3 - task.threads),
            "a sound stream");
    require(std::memcmp(codes.get(), back.get(), bytes) == 0, "codes that came back as others");
}

// The codes cut into pieces of growing length.
void encode_many(const Task& task, const std::uint8_t* data, std::int64_t size) {
    const std::int64_t bytes = task.count * task.itemsize;
    const Memory codes = filled_with(data, size, bytes), back = memory_of(bytes);
    std::vector<RansCodes> batch;
    std::int64_t capacity = 0;
    for (std::int64_t at = 0, length = 1; at < task.count; at += length, length = length * 3 / 2 + 1) {
        batch.push_back({codes.get() + at * task.itemsize, std::min(length, task.count - at)});
        capacity += rans_capacity(batch.back().count, task.itemsize);
    }
    const auto pieces = static_cast<std::int64_t>(batch.size());
    std::uint8_t book[kMostRansBook];
    const std::int64_t book_size = rans_share(batch.data(), pieces, task.itemsize, book, task.threads);
    require(0 <= book_size && book_size <= static_cast<std::int64_t>(kMostRansBook), "a book longer than promised");
    const Memory streams = memory_of(capacity);
    std::vector<std::int64_t> lengths(batch.size());
    const std::int64_t all = rans_encode_many(batch.data(), pieces, task.itemsize, streams.get(), lengths.data(),
                                              task.threads, book, static_cast<std::size_t>(book_size));
    require(0 <= all && all <= capacity, "streams longer than promised");
    std::int64_t at = 0, place = 0;
    for (std::size_t i = 0; i < batch.size(); at += lengths[i], place += batch[i].count * task.itemsize, ++i) {
        const bool shares = (streams[at] & 3) == 3;
        const RansStream one{streams.get() + at, static_cast<std::size_t>(lengths[i]), back.get() + place,
                             batch[i].count};
        require(rans_decode_many(&one, 1, task.itemsize, task.threads, book, shares ? book_size : 0), "a sound stream");
    }
    require(std::memcmp(codes.get(), back.get(), bytes) == 0, "codes that came back as others");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t head = 4;
    if (size < head) return 0;
    const Task task(data);
    constexpr void (*ways[])(const Task&, const std::uint8_t*, std::int64_t) = {decode, decode_shared, encode,
                                                                               encode_many};
    ways[static_cast<int>(task.way)](task, data + head, static_cast<std::int64_t>(size - head));
    return 0;
}
