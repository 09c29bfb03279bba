#include "unique_rows.h"

#include <algorithm>
#include <cstring>

#include "huffman.h"
#include "huffman_stream.h"
#include "rice.h"
#include "row_ranges.h"

namespace laconic {
namespace {

// The first byte of an index: a parameter of Rice's code, or this.
constexpr std::uint8_t kCoded = 32;

// Rows that repeat often are worth a code of their own, which takes a book.
constexpr std::int64_t kLeastCoded = 256, kLeastTimes = 4;

// Most that a row takes, in bytes: the new ones before it, and which it is.
constexpr std::int64_t kMostIndexBytes = kMostRiceBytes + 4;

// Codes of so many bytes, at most, that a byte of a stream of the coder makes.
constexpr std::int64_t kMostCodes = std::int64_t{1} << kMostChunkLog;

constexpr std::int64_t kRowsAtOnce = 1024;

unsigned bits_for(std::int64_t choices) { return choices < 2 ? 0 : 64 - __builtin_clzll(choices - 1); }

}  // namespace

UniqueRows::UniqueRows(const Rows& rows, const std::int64_t* given, int threads) : rows_(rows), kept_(rows.count) {
    if (rows.count > 1) find(given, threads);
    if (memory_ && lying_ < 0 && kept_ < rows.count) make_index();
}

void UniqueRows::find(const std::int64_t* given, int threads) {
    ids_ = allocate<std::int32_t>(rows_.count);
    back_ = allocate<std::int32_t>(rows_.count);
    const auto keys = allocate<std::uint64_t>(rows_.count);
    const auto slots = allocate<std::int32_t>(slots_for(rows_.count));
    memory_ = ids_ && back_ && keys && slots;
    if (!memory_) return;
    make_keys(rows_, given, threads, keys.get());
    kept_ = LACONIC_CHOOSE_KERNEL(find_repeats)(rows_, {keys.get(), slots.get(), given != nullptr},
                                                {ids_.get(), back_.get()});
    if (kept_ < 0) lying_ = -1 - kept_;
}

// Of rows so short that an index would not pay, all are kept.
void UniqueRows::make_index() {
    const bool often = rows_.count >= kLeastCoded && rows_.count >= kLeastTimes * kept_;
    const std::int64_t size = often ? encode_index() : pack_index();
    memory_ = size > 0;
    if (is_worth_it(size, (rows_.count - kept_) * rows_.bytes)) {
        index_size_ = static_cast<std::size_t>(size);
    } else {
        kept_ = rows_.count;
    }
}

std::int64_t UniqueRows::pack_index() {
    const std::int64_t repeats = rows_.count - kept_;
    index_ = allocate<std::uint8_t>(1 + repeats * kMostIndexBytes + 8);
    if (!index_) return -1;
    const int parameter = rice_parameter(kept_, repeats);
    index_[0] = static_cast<std::uint8_t>(parameter);
    BitSink sink(index_.get() + 1);
    std::int64_t seen = 0;
    std::uint32_t run = 0;
    for (std::int64_t row = 0; row < rows_.count; ++row) {
        if (back_[row] == 0) {
            ++seen;
            ++run;
        } else {
            sink.put_rice(run, parameter);
            sink.put(static_cast<std::uint32_t>(ids_[row]), bits_for(seen));
            run = 0;
        }
    }
    return sink.end() - index_.get();
}

// Where there is one row only, nothing is left to say.
std::int64_t UniqueRows::encode_index() {
    index_ = allocate<std::uint8_t>(1 + huffman_capacity(rows_.count, sizeof(std::int32_t)));
    if (!index_) return -1;
    index_[0] = kCoded;
    if (kept_ == 1) return 1;
    const std::int64_t size = huffman_encode(ids_.get(), rows_.count, sizeof(std::int32_t), index_.get() + 1, 1);
    return size < 0 ? -1 : 1 + size;
}

void UniqueRows::write(std::uint8_t* rows, std::uint8_t* index) const {
    if (index_size_ == 0) {
        if (rows_.count > 0) std::memcpy(rows, rows_.data, static_cast<std::size_t>(rows_.count * rows_.bytes));
        return;
    }
    LACONIC_CHOOSE_KERNEL(keep_new_rows)(rows_, back_.get(), kept_, rows);
    std::memcpy(index, index_.get(), index_size_);
}

namespace {

bool unpack_index(const std::uint8_t* index, std::size_t size, std::int64_t kept, std::int64_t count,
                  std::int32_t* ids) {
    const int parameter = *index;
    BitSource source(index + 1, size - 1);
    std::int64_t row = 0, seen = 0;
    for (std::int64_t left = count - kept; left > 0; --left) {
        const std::int64_t run = source.get_rice(parameter);
        if (run > kept - seen) return false;
        for (const std::int64_t end = seen + run; seen < end;) ids[row++] = static_cast<std::int32_t>(seen++);
        const std::uint64_t id = source.get(bits_for(seen));
        if (id >= static_cast<std::uint64_t>(seen)) return false;
        ids[row++] = static_cast<std::int32_t>(id);
    }
    while (seen < kept) ids[row++] = static_cast<std::int32_t>(seen++);
    return source.sound() && source.bytes() == size - 1;
}

bool decode_index(const std::uint8_t* index, std::size_t size, std::int64_t kept, std::int64_t count,
                  std::int32_t* ids) {
    if (!huffman_decode(index + 1, size - 1, ids, count, sizeof *ids, 1)) return false;
    std::int32_t seen = 0;
    bool sound = true;
    for (std::int64_t row = 0; row < count; ++row) {
        sound &= 0 <= ids[row] && ids[row] <= seen;
        seen += ids[row] == seen;
    }
    return sound && seen == kept;
}

}  // namespace

bool read_unique_rows(const Rows& kept, const std::uint8_t* index, std::size_t size, std::int64_t count,
                      std::uint8_t* to, int threads) {
    if (count < 0 || count > kMostRows || kept.count > count) return false;
    if (size == 0) {
        if (kept.count != count) return false;
        if (count > 0) std::memcpy(to, kept.data, static_cast<std::size_t>(count * kept.bytes));
        return true;
    }
    const bool coded = *index == kCoded;
    const auto bytes = static_cast<std::int64_t>(size);
    const auto take = LACONIC_CHOOSE_KERNEL(take_rows);
    if (coded && size == 1) {
        if (kept.count != 1 || count < 2) return false;
        static const std::int32_t same[kRowsAtOnce] = {};
        for (std::int64_t row = 0; row < count; row += kRowsAtOnce) {
            take(kept, same, 0, std::min(kRowsAtOnce, count - row), to + row * kept.bytes);
        }
        return true;
    }
    if (kept.count == count || (*index > kMostRice && !coded)) return false;
    if (coded ? count / kMostCodes > bytes : count - kept.count > 8 * bytes) return false;  // before memory is asked for
    const auto ids = allocate<std::int32_t>(count);
    if (!ids || !(coded ? decode_index : unpack_index)(index, size, kept.count, count, ids.get())) return false;
    over_rows(count, kept.bytes, threads, [&](std::int64_t begin, std::int64_t end) {
        take(kept, ids.get(), begin, end, to);
    });
    return true;
}

}  // namespace laconic
