#include "survey.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "huffman_job.h"

namespace laconic {
namespace {

constexpr std::int64_t kBlock = 32, kWindow = 8;  // codes; rows, or blocks, that are next to each other
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
constexpr int kTables = 4;  // symbols that follow each other are counted apart: the same one would wait for itself

// Gives `body` as many of `total` places as `most`: one anywhere in each stretch, so that no period is met.
template <class Body>
void spread(std::int64_t most, std::int64_t total, Body body) {
    std::int64_t begin = 0;
    for (std::int64_t i = 0; i < most; ++i) {
        const std::int64_t end = total <= most ? i + 1 : (i + 1) * total / most;
        const std::uint32_t noise = static_cast<std::uint32_t>(i) * std::uint32_t{2654435761u} >> 8;
        const bool alone = end - begin == 1;
        body(begin + (alone ? 0 : static_cast<std::int64_t>(noise % static_cast<std::uint64_t>(end - begin))));
        begin = end;
    }
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

// How often each of many keys comes, none of which is stored twice.
class Counts {
public:
    explicit Counts(std::int64_t most) : mask_(15) {
        while (mask_ < 2 * static_cast<std::uint64_t>(most)) mask_ = 2 * mask_ + 1;
        slots_.reset(new (std::nothrow) Slot[mask_ + 1]());
    }

    bool has_memory() const { return slots_ != nullptr; }

    // Gives how often it came before.
    std::int64_t add(std::uint64_t key) {
        std::uint64_t at = (key * kGolden >> 32) & mask_;
        while (slots_[at].times > 0 && slots_[at].key != key) at = (at + 1) & mask_;
        slots_[at].key = key;
        return slots_[at].times++;
    }

    template <class Body>
    void each(Body body) const {
        for (std::uint64_t at = 0; at <= mask_; ++at) {
            if (slots_[at].times > 0) body(slots_[at].times);
        }
    }

private:
    struct Slot {
        std::uint64_t key;
        std::int64_t times;
    };
    std::unique_ptr<Slot[]> slots_;
    std::uint64_t mask_;
};

template <class T>
void count_block(const SurveyJob& job, std::int64_t block, std::uint32_t (*symbols)[256], Counts& words,
                 std::int64_t* found) {
    const std::int64_t size = std::min(kBlock, job.count - block * kBlock);
    T codes[kBlock] = {};
    std::memcpy(codes, static_cast<const T*>(job.codes) + block * kBlock, static_cast<std::size_t>(size) * sizeof(T));
    for (std::int64_t i = 0; i < size; ++i) ++symbols[i % kTables][symbol_of(codes[i])];
    T bits = 0;
    if (job.zigzag) {
        for (const T code : codes) bits |= zigzagged(code);
    } else {
        for (const T code : codes) bits |= code;
    }
    if (bits != 0) found[kPlanes] += 1 + 4 * (32 - __builtin_clz(static_cast<std::uint32_t>(bits)));
    std::uint64_t word;
    std::memcpy(&word, codes, sizeof word);
    const std::int64_t before = words.add(word);
    found[kWords] += before;
    found[kSeenWords] += before > 0;
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
class RowHash {
public:
    explicit RowHash(std::int64_t nbytes) : words_(std::min<std::int64_t>(8, (nbytes + 7) / 8)), short_(nbytes & 7) {
        for (std::int64_t i = 0; i < words_ && nbytes >= 8; ++i) at_[i] = words_ > 1 ? (nbytes - 8) * i / (words_ - 1) : 0;
        if (nbytes >= 8) short_ = 0;
    }

    std::uint64_t operator()(const unsigned char* row) const {
        std::uint64_t hash = 0, word = 0;
        if (short_ > 0) std::memcpy(&word, row, short_);
        for (std::int64_t i = 0; i < words_; ++i) {
            if (short_ == 0) std::memcpy(&word, row + at_[i], sizeof word);
            const std::uint64_t mixed = (word + static_cast<std::uint64_t>(i)) * kGolden;
            hash += (mixed ^ mixed >> 32) * (2 * static_cast<std::uint64_t>(i) + 1);
        }
        return hash;
    }

private:
    std::int64_t at_[8] = {}, words_;
    std::size_t short_;  // the bytes of a row that is no word
};

bool count_rows(const SurveyJob& job, std::int64_t* found) {
    const std::int64_t nbytes = job.row * job.itemsize, rows = job.count / job.row;
    const std::int64_t all = (rows + kWindow - 1) / kWindow, windows = std::min(all, job.most_rows / kWindow);
    Counts kinds(windows * kWindow);
    if (!kinds.has_memory()) return false;
    const RowHash hash_of(nbytes);
    spread(windows, all, [&](std::int64_t window) {
        const std::int64_t begin = window * kWindow, end = std::min(rows, begin + kWindow);
        std::uint64_t before = 0;
        for (std::int64_t row = begin; row < end; ++row) {
            const std::uint64_t hash = hash_of(static_cast<const unsigned char*>(job.codes) + row * nbytes);
            const bool equal = row > begin && hash == before;
            if (!equal) found[kAlikeRows] += kinds.add(hash);
            found[kRowPairs] += row > begin;
            found[kEqualRows] += equal;
            before = hash;
        }
    });
    found[kRows] = found[kRowPairs] + windows;
    kinds.each([&](std::int64_t times) {
        ++found[kRowKinds + std::min<std::int64_t>(times, kMostAlike) - 1];
    });
    return true;
}

void summarise(const std::int64_t* symbols, bool wide, std::int64_t* found) {
    double entropy = 0;
    for (int symbol = 0; symbol < 256; ++symbol) {
        const std::int64_t count = symbols[symbol];
        if (count == 0) continue;
        found[kCodes] += count;
        ++found[kKinds];
        found[kSquares] += count * count;
        if (wide) found[kExtra] += count * kExtraBits.of[symbol];
        entropy += static_cast<double>(count) * std::log2(static_cast<double>(count));
    }
    found[kEntropy] = std::llround(entropy * 1024);
    found[kHuffman] = huffman_bits(symbols);
}

}  // namespace

bool survey(const SurveyJob& job, std::int64_t* found) {
    std::fill_n(found, kSurveySize, 0);
    const std::int64_t all = (job.count + kBlock - 1) / kBlock, windows = (all + kWindow - 1) / kWindow;
    Counts words(std::min(all, job.most_blocks));
    if (!words.has_memory()) return false;
    std::uint32_t tables[kTables][256] = {};
    const auto count = job.itemsize == 1   ? count_block<std::uint8_t>
                       : job.itemsize == 2 ? count_block<std::uint16_t>
                                           : count_block<std::uint32_t>;
    spread(std::min(windows, job.most_blocks / kWindow), windows, [&](std::int64_t window) {
        const std::int64_t begin = window * kWindow, end = std::min(all, begin + kWindow);
        for (std::int64_t block = begin; block < end; ++block) count(job, block, tables, words, found);
        found[kBlocks] += end - begin;
    });
    std::int64_t symbols[256];
    for (int symbol = 0; symbol < 256; ++symbol) {
        symbols[symbol] = 0;
        for (const auto& table : tables) symbols[symbol] += table[symbol];
    }
    summarise(symbols, job.itemsize > 1, found);
    return job.row == 0 || count_rows(job, found);
}

}  // namespace laconic
