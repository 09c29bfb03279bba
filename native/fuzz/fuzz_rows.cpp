// Whatever bytes come, the decoders of `rows` and `vlz` neither read nor write beyond what they are given; and what the
// encoders wrote comes back.
//
//   | 8 bytes: what to do, and with which sizes | an index or a stream, or rows to make one of |
#include "../unique_rows.h"
#include "../vlz.h"

#include "fuzz.h"

using namespace laconic;

namespace {

constexpr std::int64_t kMostBytes = 1 << 18;

struct Task {
    bool vlz, encodes, given;
    int itemsize, threads;
    std::int64_t count, bytes, kept;  // rows, bytes of each, and rows in the main part
    VlzSearch search;

    explicit Task(const std::uint8_t* head)
        : vlz((head[0] & 1) != 0),
          encodes((head[0] >> 1 & 1) != 0),
          given((head[0] >> 2 & 1) != 0),
          itemsize(1 << (head[0] >> 3 & 3) % 3),
          threads(1 + (head[0] >> 5 & 1)),
          count(head[1] | head[2] << 8),
          bytes((1 + head[3]) * itemsize),
          kept(head[4] | head[5] << 8),
          search{1 + head[6], 1 + 4 * head[7]} {}

    Rows rows(const Memory& memory) const { return {memory.get(), count, bytes}; }
};

void decode(const Task& task, const std::uint8_t* data, std::int64_t size) {
    const Memory stream = filled_with(data, size, size), codes = memory_of(task.count * task.bytes);
    if (task.vlz) {
        vlz_decode(stream.get(), size, codes.get(), task.count, task.bytes, task.itemsize, task.threads);
    } else {
        const Memory kept = memory_of(task.kept * task.bytes);
        read_unique_rows({kept.get(), task.kept, task.bytes}, stream.get(), size, task.count, codes.get(),
                         task.threads);
    }
}

Memory there_and_back(const Task& task, const Memory& codes) {
    const std::int64_t bytes = task.count * task.bytes, capacity = vlz_capacity(bytes);
    const Memory stream = memory_of(capacity);
    const std::int64_t length =
        vlz_encode(task.rows(codes), task.itemsize, task.search, stream.get(), task.threads);
    require(0 <= length && length <= capacity, "a stream longer than promised");
    const Memory tight = filled_with(stream.get(), length, length);
    Memory back = memory_of(bytes);
    require(vlz_decode(tight.get(), length, back.get(), task.count, task.bytes, task.itemsize, 3 - task.threads),
            "a sound stream");
    return back;
}

Memory kept_and_taken(const Task& task, const Memory& codes) {
    const auto given = std::make_unique<std::int64_t[]>(task.count);
    for (std::int64_t row = 0; row < task.count; ++row) given[row] = codes[row * task.bytes];
    const UniqueRows found(task.rows(codes), task.given ? given.get() : nullptr, task.threads);
    require(found.has_memory(), "memory");
    if (found.lying() >= 0) {
        const std::int64_t row = found.lying(), before = found.lying_before();
        require(task.given && before < row && given[row] == given[before], "a lie that was not told");
        require(std::memcmp(&codes[row * task.bytes], &codes[before * task.bytes], task.bytes) != 0, "a lie");
        return filled_with(codes.get(), task.count * task.bytes, task.count * task.bytes);
    }
    require(4 * found.index_size() <= task.count * task.bytes, "an index longer than promised");
    const Memory kept = memory_of(found.kept() * task.bytes), index = memory_of(found.index_size());
    found.write(kept.get(), index.get());
    Memory back = memory_of(task.count * task.bytes);
    require(read_unique_rows({kept.get(), found.kept(), task.bytes}, index.get(), found.index_size(), task.count,
                             back.get(), 3 - task.threads),
            "a sound index");
    return back;
}

// Rows of the input's bytes, which are repeated as they are few: with a period of `kept` rows at most.
void encode(const Task& task, const std::uint8_t* data, std::int64_t size) {
    const std::int64_t bytes = task.count * task.bytes;
    const Memory codes = filled_with(data, std::min(size, (1 + task.kept) * task.bytes), bytes);
    const Memory back = task.vlz ? there_and_back(task, codes) : kept_and_taken(task, codes);
    require(std::memcmp(codes.get(), back.get(), bytes) == 0, "codes that came back as others");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t head = 8;
    if (size < head) return 0;
    const Task task(data);
    if (task.count * task.bytes > kMostBytes || task.kept * task.bytes > kMostBytes) return 0;
    (task.encodes ? encode : decode)(task, data + head, static_cast<std::int64_t>(size - head));
    return 0;
}
