#include "vlz.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "huffman.h"
#include "huffman_stream.h"
#include "rice.h"
#include "row_ranges.h"

namespace laconic {
namespace {

enum class VlzMode : std::uint8_t { literals, matches };

// A stream with matches begins with its mode, the three parameters of the matches' numbers, and how many rows are
// literals.
constexpr int kParameterBits = 5;
constexpr std::size_t kFixedHead = 3;
constexpr std::int64_t kMostHead = kFixedHead + 5, kMostMatchBytes = 3 * kMostRiceBytes;

// The matches of a block, found from its first row on: each as long as it can be, with the last equal row before.
class Matches {
public:
    Matches(const Rows& codes, const VlzSearch& search)
        : codes_(codes),
          search_(search),
          blocks_((codes.count + search.block - 1) / search.block),
          found_(allocate<Found>(blocks_)) {}

    // False without memory.
    bool find(int threads) {
        if (!found_) return false;
        std::atomic<bool> memory{true};
        over_rows(blocks_, search_.block * codes_.bytes, threads, [&](std::int64_t begin, std::int64_t end) {
            if (!find_blocks(begin, end)) memory = false;
        });
        return memory && join();
    }

    const RowMatch* begin() const { return matches_.get(); }
    const RowMatch* end() const { return matches_.get() + count_; }
    std::int64_t size() const { return count_; }

private:
    struct Found {
        std::unique_ptr<RowMatch[]> matches;
        std::int64_t count = 0;
    };

    bool find_blocks(std::int64_t begin, std::int64_t end) {
        const std::int64_t most = std::min(search_.block, codes_.count);
        const auto ids = allocate<std::int32_t>(2 * most), slots = allocate<std::int32_t>(slots_for(most));
        const auto keys = allocate<std::uint64_t>(most);
        if (!ids || !slots || !keys) return false;
        const Repeats repeats{ids.get(), ids.get() + most};
        for (std::int64_t block = end; block-- > begin;) {
            const std::int64_t first = block * search_.block;
            const Rows rows = codes_.from(first, std::min(search_.block, codes_.count - first));
            make_keys(rows, nullptr, 1, keys.get());
            const auto kept = LACONIC_CHOOSE_KERNEL(find_repeats)(rows, {keys.get(), slots.get(), false}, repeats);
            if (kept < rows.count && !choose(rows.count, repeats, rows.count - kept, found_[block])) return false;
        }
        return true;
    }

    // Of at most so many.
    bool choose(std::int64_t rows, const Repeats& repeats, std::int64_t most, Found& found) const {
        found.matches = allocate<RowMatch>(most);
        if (!found.matches) return false;
        RowMatch* next = found.matches.get();
        std::int64_t after = 0;  // the last match
        for (std::int64_t row = 0; row < rows;) {
            const std::int32_t back = repeats.back[row];
            if (back == 0 || back > search_.window) {
                ++row;
                continue;
            }
            std::int64_t end = row + 1;
            while (end < rows && repeats.ids[end] == repeats.ids[end - back]) ++end;
            *next++ = {static_cast<std::uint32_t>(row - after), static_cast<std::uint32_t>(end - row),
                       static_cast<std::uint32_t>(back)};
            row = after = end;
        }
        found.count = next - found.matches.get();
        return true;
    }

    // The blocks' matches one behind the other. Literals at the end of a block go before the next one's.
    bool join() {
        for (std::int64_t block = 0; block < blocks_; ++block) count_ += found_[block].count;
        if (blocks_ == 1) {
            matches_ = std::move(found_[0].matches);
            return true;
        }
        matches_ = allocate<RowMatch>(count_);
        if (!matches_) return false;
        RowMatch* to = matches_.get();
        std::int64_t literals = 0;  // since the last match
        for (std::int64_t block = 0; block < blocks_; ++block) {
            std::int64_t left = std::min(search_.block, codes_.count - block * search_.block);
            for (std::int64_t k = 0; k < found_[block].count; ++k, ++to) {
                *to = found_[block].matches[k];
                left -= std::int64_t{to->literals} + to->rows;
                to->literals += static_cast<std::uint32_t>(literals);
                literals = 0;
            }
            literals += left;
        }
        return true;
    }

    const Rows codes_;
    const VlzSearch search_;
    const std::int64_t blocks_;
    std::unique_ptr<Found[]> found_;  // in each block
    std::unique_ptr<RowMatch[]> matches_;
    std::int64_t count_ = 0;
};

struct Sums {
    std::uint64_t literals = 0, rows = 0, back = 0;

    explicit Sums(const Matches& matches) {
        for (const RowMatch& match : matches) {
            literals += match.literals;
            rows += match.rows;
            back += match.back;
        }
    }
};

std::uint8_t* write_number(std::uint64_t number, std::uint8_t* to) {
    for (; number >= 128; number >>= 7) *to++ = static_cast<std::uint8_t>(number | 128);
    *to++ = static_cast<std::uint8_t>(number);
    return to;
}

// Gives where it ends; with seven bytes behind that which may be written to.
std::uint8_t* write_matches(const Matches& matches, const Sums& sums, std::int64_t rows, std::uint8_t* to) {
    const auto count = static_cast<std::uint64_t>(matches.size());
    const int literals = rice_parameter(sums.literals, count), length = rice_parameter(sums.rows - count, count),
              back = rice_parameter(sums.back - count, count);
    const int parameters = literals | length << kParameterBits | back << 2 * kParameterBits;
    to[0] = static_cast<std::uint8_t>(VlzMode::matches);
    to[1] = static_cast<std::uint8_t>(parameters);
    to[2] = static_cast<std::uint8_t>(parameters >> 8);
    BitSink sink(write_number(static_cast<std::uint64_t>(rows) - sums.rows, to + kFixedHead));
    for (const RowMatch& match : matches) {
        sink.put_rice(match.literals, literals);
        sink.put_rice(match.rows - 1, length);
        sink.put_rice(match.back - 1, back);
    }
    return sink.end();
}

std::int64_t count_of(std::int64_t bytes, int itemsize) { return bytes / itemsize; }

std::int64_t write_literals(const Rows& codes, int itemsize, std::uint8_t* stream, int threads) {
    stream[0] = static_cast<std::uint8_t>(VlzMode::literals);
    const std::int64_t count = count_of(codes.count * codes.bytes, itemsize);
    const std::int64_t size = huffman_encode(codes.data, count, itemsize, stream + 1, threads);
    return size < 0 ? -1 : 1 + size;
}

}  // namespace

std::int64_t vlz_capacity(std::int64_t bytes) { return 1 + huffman_capacity(bytes, 1); }

std::int64_t vlz_encode(const Rows& codes, int itemsize, const VlzSearch& search, std::uint8_t* stream, int threads) {
    if (codes.count < 2) return write_literals(codes, itemsize, stream, threads);
    Matches matches(codes, search);
    if (!matches.find(threads)) return -1;
    if (matches.size() == 0) return write_literals(codes, itemsize, stream, threads);

    const Sums sums(matches);
    const auto head = allocate<std::uint8_t>(kMostHead + matches.size() * kMostMatchBytes + 8);
    if (!head) return -1;
    const std::int64_t size = write_matches(matches, sums, codes.count, head.get()) - head.get();
    const auto repeated = static_cast<std::int64_t>(sums.rows) * codes.bytes;
    if (!is_worth_it(size, repeated)) return write_literals(codes, itemsize, stream, threads);

    const std::int64_t bytes = codes.count * codes.bytes - repeated;
    const auto literals = allocate<std::uint8_t>(bytes);
    if (!literals) return -1;
    LACONIC_CHOOSE_KERNEL(keep_literals)(codes, matches.begin(), matches.size(), literals.get());
    std::memcpy(stream, head.get(), static_cast<std::size_t>(size));
    const std::int64_t coded =
        huffman_encode(literals.get(), count_of(bytes, itemsize), itemsize, stream + size, threads);
    return coded < 0 ? -1 : size + coded;
}

namespace {

// What the head of a stream says, as far as it can be so for `count` rows.
struct Head {
    std::int64_t literals = 0;
    std::size_t size = 0;  // 0 where it cannot

    Head(const std::uint8_t* stream, std::size_t bytes, std::int64_t count) {
        std::uint64_t number = 0;
        std::size_t at = kFixedHead;
        for (unsigned shift = 0; at < bytes && shift < 35; shift += 7) {
            number |= std::uint64_t{stream[at] & 127u} << shift;
            if (stream[at++] >= 128) continue;
            if (number == 0 || number >= static_cast<std::uint64_t>(count) || stream[2] >= 128) return;
            literals = static_cast<std::int64_t>(number);
            size = at;
            return;
        }
    }
};

// Stops where literals are all that is left. Nothing is before the first row, nor behind the last.
std::int64_t read_matches(const std::uint8_t* stream, const Head& head, std::int64_t count, BitSource& source,
                          RowMatch* to) {
    const int parameters = stream[1] | stream[2] << 8, most = (1 << kParameterBits) - 1;
    std::int64_t row = 0, literals = head.literals, rows = count - head.literals, found = 0;
    while (rows > 0) {
        const std::int64_t run = source.get_rice(parameters & most);
        const std::int64_t length = source.get_rice(parameters >> kParameterBits & most) + 1;
        const std::int64_t back = source.get_rice(parameters >> 2 * kParameterBits) + 1;
        row += run;
        literals -= run;
        rows -= length;
        if (literals < 0 || rows < 0 || back > row || source.beyond_end()) return -1;
        row += length;
        to[found++] = {static_cast<std::uint32_t>(run), static_cast<std::uint32_t>(length),
                       static_cast<std::uint32_t>(back)};
    }
    return found;
}

// The literals are read to the end of the codes' own memory, and from there they go where they belong.
bool decode_matches(const std::uint8_t* stream, std::size_t size, std::uint8_t* codes, std::int64_t count,
                    std::int64_t row_bytes, int itemsize, int threads) {
    const Head head(stream, size, count);
    if (head.size == 0) return false;
    BitSource source(stream + head.size, size - head.size);
    const auto least_bits = 3;  // of a match, which has one row at least
    const auto matches = allocate<RowMatch>(
        std::min(count - head.literals, static_cast<std::int64_t>(8 * (size - head.size)) / least_bits + 1));
    if (!matches) return false;
    const std::int64_t found = read_matches(stream, head, count, source, matches.get());
    if (found < 0 || !source.sound()) return false;
    const std::size_t at = head.size + source.bytes();
    const std::int64_t bytes = head.literals * row_bytes;
    std::uint8_t* literals = codes + count * row_bytes - bytes;
    if (!huffman_decode(stream + at, size - at, literals, count_of(bytes, itemsize), itemsize, threads)) return false;
    LACONIC_CHOOSE_KERNEL(put_matches)(matches.get(), found, row_bytes, literals, codes);
    return true;
}

}  // namespace

bool vlz_decode(const std::uint8_t* stream, std::size_t size, std::uint8_t* codes, std::int64_t count,
                std::int64_t row_bytes, int itemsize, int threads) {
    if (size == 0 || count < 0 || count > kMostRows) return false;
    switch (static_cast<VlzMode>(*stream)) {
        case VlzMode::literals:
            return huffman_decode(stream + 1, size - 1, codes, count_of(count * row_bytes, itemsize), itemsize,
                                  threads);
        case VlzMode::matches: return decode_matches(stream, size, codes, count, row_bytes, itemsize, threads);
        default: return false;
    }
}

}  // namespace laconic
