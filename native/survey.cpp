#include "survey.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "huffman_job.h"

namespace laconic {
namespace {

constexpr std::int64_t kBlock = 32, kWindow = 8;
constexpr int kTables = 4;  // symbols that follow each other are counted apart: the same one would wait for itself

// The i-th of `most` places that are spread over `total`: one anywhere in each stretch, so that no period is met.
std::int64_t spread(std::int64_t i, std::int64_t most, std::int64_t total) {
    if (total <= most) return i;
    const std::int64_t begin = i * total / most, end = (i + 1) * total / most;
    const auto noise = static_cast<std::uint32_t>(i) * std::uint32_t{2654435761u} >> 8;
    return begin + static_cast<std::int64_t>(noise) % (end - begin);
}

int symbol_of(std::uint8_t code) { return code; }

template <class T>
int symbol_of(T code) {
    const auto wide = static_cast<std::int32_t>(static_cast<std::make_signed_t<T>>(code));
    const std::uint32_t folded = static_cast<std::uint32_t>(wide) << 1 ^ static_cast<std::uint32_t>(wide >> 31);
    if (folded < kFirstWithExtra) return static_cast<int>(folded);
    const int exponent = 31 - __builtin_clz(folded);
    return static_cast<int>(kFirstWithExtra + 4 * (exponent - 7) + (folded >> (exponent - 2) & 3));
}

template <class T>
T zigzagged(T code) {
    const auto sign = static_cast<T>(static_cast<std::make_signed_t<T>>(code) >> (8 * sizeof(T) - 1));
    return static_cast<T>(static_cast<T>(code << 1) ^ sign);
}

template <class T>
void count_block(const SurveyJob& job, std::int64_t block, std::uint32_t (*symbols)[256], std::int64_t* widths) {
    const std::int64_t size = std::min(kBlock, job.count - block * kBlock);
    T codes[kBlock] = {};
    std::memcpy(codes, static_cast<const T*>(job.codes) + block * kBlock, static_cast<std::size_t>(size) * sizeof(T));
    for (std::int64_t i = 0; i < size; ++i) ++symbols[i % kTables][symbol_of(codes[i])];
    T bits = 0;
    for (const T code : codes) bits |= job.zigzag ? zigzagged(code) : code;
    ++widths[bits == 0 ? 0 : 32 - __builtin_clz(static_cast<std::uint32_t>(bits))];
}

// The bits of all words of a Huffman code for these, each of which counts.
std::int64_t huffman_bits(const std::int64_t* symbols) {
    std::int64_t merged[256], counts[256], total = 0;
    int leaves = 0, leaf = 0, first = 0, last = 0;
    for (int symbol = 0; symbol < 256; ++symbol) {
        if (symbols[symbol] > 0) counts[leaves++] = symbols[symbol];
    }
    std::sort(counts, counts + leaves);
    const auto least = [&] {
        const bool take_leaf = leaf < leaves && (first == last || counts[leaf] <= merged[first]);
        return take_leaf ? counts[leaf++] : merged[first++];
    };
    for (int step = 1; step < leaves; ++step) {
        const std::int64_t one = least(), other = least();
        merged[last++] = one + other;
        total += one + other;
    }
    return total;
}

// Of long rows, eight words.
std::uint64_t hash_of(const unsigned char* row, std::int64_t nbytes) {
    const std::int64_t words = std::min<std::int64_t>(8, (nbytes + 7) / 8);
    std::uint64_t hash = 0;
    for (std::int64_t i = 0; i < words; ++i) {
        std::uint64_t word = 0;
        const std::int64_t at = words > 1 ? (nbytes - 8) * i / (words - 1) : 0;
        std::memcpy(&word, row + at, static_cast<std::size_t>(std::min<std::int64_t>(8, nbytes)));
        word = (word + static_cast<std::uint64_t>(i)) * 0x9e3779b97f4a7c15u;
        hash += (word ^ word >> 32) * (2 * static_cast<std::uint64_t>(i) + 1);
    }
    return hash;
}

struct RowCounts {
    struct Slot {
        std::uint64_t hash;
        std::int64_t times;
    };
    std::unique_ptr<Slot[]> slots;
    std::uint64_t mask;

    explicit RowCounts(std::int64_t rows) : mask(15) {
        while (mask < 2 * static_cast<std::uint64_t>(rows)) mask = 2 * mask + 1;
        slots.reset(new (std::nothrow) Slot[mask + 1]());
    }

    void add(std::uint64_t hash) {
        std::uint64_t at = (hash ^ hash >> 29) & mask;
        while (slots[at].times > 0 && slots[at].hash != hash) at = (at + 1) & mask;
        slots[at].hash = hash;
        ++slots[at].times;
    }
};

bool count_rows(const SurveyJob& job, std::int64_t* found) {
    const std::int64_t nbytes = job.row * job.itemsize, rows = job.count / job.row;
    const std::int64_t all = (rows + kWindow - 1) / kWindow, windows = std::min(all, job.most_rows / kWindow);
    RowCounts counts(windows * kWindow);
    if (!counts.slots) return false;
    for (std::int64_t i = 0; i < windows; ++i) {
        const std::int64_t begin = spread(i, windows, all) * kWindow, end = std::min(rows, begin + kWindow);
        std::uint64_t before = 0;
        for (std::int64_t row = begin; row < end; ++row) {
            const std::uint64_t hash = hash_of(static_cast<const unsigned char*>(job.codes) + row * nbytes, nbytes);
            const bool equal = row > begin && hash == before;
            if (!equal) counts.add(hash);
            found[kSurveyPairs] += row > begin;
            found[kSurveyEqual] += equal;
            before = hash;
        }
    }
    for (std::uint64_t at = 0; at <= counts.mask; ++at) {
        const std::int64_t times = std::min<std::int64_t>(counts.slots[at].times, kSurveyMostAlike);
        if (times > 0) ++found[kSurveyClasses + times - 1];
    }
    return true;
}

}  // namespace

bool survey(const SurveyJob& job, std::int64_t* found) {
    std::fill_n(found, kSurveySize, 0);
    std::uint32_t symbols[kTables][256] = {};
    const std::int64_t all = (job.count + kBlock - 1) / kBlock, blocks = std::min(all, job.most_blocks);
    const auto count = job.itemsize == 1   ? count_block<std::uint8_t>
                       : job.itemsize == 2 ? count_block<std::uint16_t>
                                           : count_block<std::uint32_t>;
    for (std::int64_t i = 0; i < blocks; ++i) count(job, spread(i, blocks, all), symbols, found + kSurveyWidths);
    for (int symbol = 0; symbol < 256; ++symbol) {
        for (const auto& table : symbols) found[symbol] += table[symbol];
    }
    found[kSurveyHuffman] = huffman_bits(found);
    return job.row == 0 || count_rows(job, found);
}

}  // namespace laconic
