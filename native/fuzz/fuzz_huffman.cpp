// Whatever bytes come, the Huffman decoder neither reads nor writes beyond what it is given; and what the encoder
// wrote comes back.
//
//   | 4 bytes: what to do, and how many codes | a stream, or codes to make one of |
#include "../huffman.h"

#include "fuzz.h"

using namespace laconic;

namespace {

struct Task {
    int itemsize, threads;
    bool encodes;
    std::int64_t count;

    explicit Task(const std::uint8_t* head)
        : itemsize(1 << head[0] % 3),
          threads(1 + (head[0] >> 2 & 1)),
          encodes((head[0] >> 3 & 1) != 0),
          count(head[1] | head[2] << 8 | (head[3] & 1) << 16) {}
};

void decode(const Task& task, const std::uint8_t* data, std::int64_t size) {
    const Memory stream = filled_with(data, size, size), codes = memory_of(task.count * task.itemsize);
    huffman_decode(stream.get(), size, codes.get(), task.count, task.itemsize, task.threads);
}

void encode(const Task& task, const std::uint8_t* data, std::int64_t size) {
    const std::int64_t bytes = task.count * task.itemsize, capacity = huffman_capacity(task.count, task.itemsize);
    const Memory codes = filled_with(data, size, bytes), stream = memory_of(capacity), back = memory_of(bytes);
    const std::int64_t length = huffman_encode(codes.get(), task.count, task.itemsize, stream.get(), task.threads);
    require(0 <= length && length <= capacity, "a stream longer than promised");
    const Memory tight = filled_with(stream.get(), length, length);
    require(huffman_decode(tight.get(), length, back.get(), task.count, task.itemsize, 3 - task.threads),
            "a sound stream");
    require(std::memcmp(codes.get(), back.get(), bytes) == 0, "codes that came back as others");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t head = 4;
    if (size < head) return 0;
    const Task task(data);
    (task.encodes ? encode : decode)(task, data + head, static_cast<std::int64_t>(size - head));
    return 0;
}
