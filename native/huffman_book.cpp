#include "huffman_book.h"

#include <algorithm>

namespace laconic {
namespace {

// What one round of package-merge makes: leaves and pairs of the round before, lightest first.
struct Round {
    std::int64_t weights[2 * kSymbols];
    bool is_leaf[2 * kSymbols];
    int size = 0;

    void add(std::int64_t weight, bool leaf) {
        weights[size] = weight;
        is_leaf[size++] = leaf;
    }
};

struct Leaves {
    std::int64_t weights[kSymbols];
    int symbols[kSymbols];
    int size = 0;

    explicit Leaves(const std::int64_t counts[kSymbols]) {
        for (int symbol = 0; symbol < kSymbols; ++symbol) {
            if (counts[symbol] > 0) symbols[size++] = symbol;
        }
        for (int other = 0; size < 2; ++other) {
            if (counts[other] == 0) symbols[size++] = other;
        }
        std::sort(symbols, symbols + size, [counts](int a, int b) {
            return counts[a] != counts[b] ? counts[a] < counts[b] : a < b;
        });
        for (int i = 0; i < size; ++i) weights[i] = counts[symbols[i]];
    }
};

// A leaf goes before a pair of the same weight.
void merge(const Leaves& leaves, const Round& before, Round& round) {
    const int pairs = before.size / 2;
    int leaf = 0, pair = 0;
    while (leaf < leaves.size || pair < pairs) {
        const std::int64_t weight = pair < pairs ? before.weights[2 * pair] + before.weights[2 * pair + 1] : 0;
        const bool take_leaf = pair == pairs || (leaf < leaves.size && leaves.weights[leaf] <= weight);
        round.add(take_leaf ? leaves.weights[leaf] : weight, take_leaf);
        ++(take_leaf ? leaf : pair);
    }
}

std::uint32_t reversed(std::uint32_t word, int length) {
    std::uint32_t result = 0;
    for (int bit = 0; bit < length; ++bit) result |= (word >> bit & 1) << (length - 1 - bit);
    return result;
}

struct Word {
    int symbol, length;
    std::uint32_t bits;  // the first one lowest
};

// A book's words in canonical order.
struct Words {
    Word words[kSymbols];
    int size = 0;

    explicit Words(const HuffmanBook& book) {
        std::uint32_t next = 0;
        for (int length = 1; length <= kMaxWordBits; ++length, next <<= 1) {
            for (int symbol = 0; symbol < kSymbols; ++symbol) {
                if (book.lengths[symbol] == length) words[size++] = {symbol, length, reversed(next++, length)};
            }
        }
    }

    const Word* begin() const { return words; }
    const Word* end() const { return words + size; }
};

bool is_complete(const HuffmanBook& book) {
    int taken = 0;
    for (const int length : book.lengths) taken += length == 0 ? 0 : 1 << (kMaxWordBits - length);
    return taken == 1 << kMaxWordBits;
}

// The stored form: half bytes, low half first.
//
//   0            a symbol without a word       13 h h   18 + hh of them (the low half first)
//   1 .. 11      one with a word this long     14 h     3 + h more like the last one with a word
//   12 h         2 + h without a word
constexpr int kFewAbsent = 12, kManyAbsent = 13, kRepeat = 14;
constexpr int kLeastFew = 2, kLeastMany = 18, kLeastRepeat = 3;

class HalfWriter {
public:
    explicit HalfWriter(std::uint8_t* to) : to_(to) {}

    void put(int half) {
        std::uint8_t& byte = to_[halves_ / 2];
        byte = static_cast<std::uint8_t>(halves_ % 2 == 0 ? half : byte | half << 4);
        ++halves_;
    }

    std::size_t bytes() const { return (halves_ + 1) / 2; }

private:
    std::uint8_t* to_;
    std::size_t halves_ = 0;
};

// Reads -1 beyond the end.
class HalfReader {
public:
    HalfReader(const std::uint8_t* from, std::size_t size) : from_(from), size_(2 * size) {}

    int get() {
        if (halves_ == size_) return -1;
        const int byte = from_[halves_ / 2];
        return halves_++ % 2 == 0 ? byte & 15 : byte >> 4;
    }

    std::size_t bytes() const { return (halves_ + 1) / 2; }
    bool ends_clean() const { return halves_ % 2 == 0 || from_[halves_ / 2] >> 4 == 0; }

private:
    const std::uint8_t* from_;
    std::size_t size_;
    std::size_t halves_ = 0;
};

int run_length(const HuffmanBook& book, int symbol) {
    int end = symbol + 1;
    while (end < kSymbols && book.lengths[end] == book.lengths[symbol]) ++end;
    return end - symbol;
}

int write_absent(HalfWriter& out, int run) {
    if (run >= kLeastMany) {
        out.put(kManyAbsent);
        out.put((run - kLeastMany) & 15);
        out.put((run - kLeastMany) >> 4);
    } else if (run >= kLeastFew) {
        out.put(kFewAbsent);
        out.put(run - kLeastFew);
    } else {
        out.put(0);
    }
    return run;
}

int write_present(HalfWriter& out, int length, int run) {
    out.put(length);
    if (run <= kLeastRepeat) return 1;
    const int more = std::min(run - 1, kLeastRepeat + 15);
    out.put(kRepeat);
    out.put(more - kLeastRepeat);
    return 1 + more;
}

// How many symbols this half byte, and those it asks for, stand for; -1 where that is nothing.
int read_run(HalfReader& in, int half, int last) {
    if (half <= kMaxWordBits) return half < 0 ? -1 : 1;
    const int low = in.get();
    if (low < 0) return -1;
    if (half == kFewAbsent) return kLeastFew + low;
    if (half == kRepeat) return last == 0 ? -1 : kLeastRepeat + low;
    const int high = half == kManyAbsent ? in.get() : -1;
    return high < 0 ? -1 : kLeastMany + low + 16 * high;
}

constexpr std::uint64_t kOneSymbol = std::uint64_t{1} << 56;

std::uint64_t bits_of(int length) { return static_cast<std::uint64_t>(length) << 48; }

// One symbol before what an entry holds; where that is full, its last symbol makes room.
std::uint64_t prepend(const Word& word, std::uint64_t entry, const HuffmanBook& book) {
    if (entry >> 56 == kEntrySymbols) {
        const int last = static_cast<int>(entry >> 8 * (kEntrySymbols - 1) & 255);
        entry -= kOneSymbol + bits_of(book.lengths[last]);
    }
    const std::uint64_t symbols = entry << 8 & ((std::uint64_t{1} << 8 * kEntrySymbols) - 1);
    const std::uint64_t numbers = entry >> 48 << 48;
    return (symbols | static_cast<std::uint64_t>(word.symbol)) | (numbers + kOneSymbol + bits_of(word.length));
}

}  // namespace

int HuffmanBook::first_symbol() const {
    int first = -1;
    for (int symbol = 0; symbol < kSymbols; ++symbol) {
        if (lengths[symbol] != 0 && (first < 0 || lengths[symbol] < lengths[first])) first = symbol;
    }
    return first;
}

HuffmanBook make_book(const std::int64_t counts[kSymbols]) {
    const Leaves leaves(counts);
    Round rounds[kMaxWordBits];
    for (int i = 0; i < kMaxWordBits; ++i) merge(leaves, i == 0 ? Round() : rounds[i - 1], rounds[i]);
    HuffmanBook book{};
    int taken = 2 * leaves.size - 2;
    for (int i = kMaxWordBits - 1; i >= 0; --i) {
        const int leaf = static_cast<int>(std::count(rounds[i].is_leaf, rounds[i].is_leaf + taken, true));
        for (int j = 0; j < leaf; ++j) ++book.lengths[leaves.symbols[j]];
        taken = 2 * (taken - leaf);
    }
    return book;
}

std::size_t write_book(const HuffmanBook& book, std::uint8_t* to) {
    HalfWriter out(to);
    for (int symbol = 0; symbol < kSymbols;) {
        const int run = run_length(book, symbol), length = book.lengths[symbol];
        symbol += length == 0 ? write_absent(out, run) : write_present(out, length, run);
    }
    return out.bytes();
}

std::size_t read_book(const std::uint8_t* from, std::size_t size, HuffmanBook& book) {
    HalfReader in(from, size);
    int last = 0;
    for (int symbol = 0; symbol < kSymbols;) {
        const int half = in.get(), run = read_run(in, half, last);
        if (run < 0 || run > kSymbols - symbol) return 0;
        if (0 < half && half <= kMaxWordBits) last = half;
        const int length = half == 0 || half == kFewAbsent || half == kManyAbsent ? 0 : last;
        std::fill_n(book.lengths + symbol, run, static_cast<std::uint8_t>(length));
        symbol += run;
    }
    return in.ends_clean() && is_complete(book) ? in.bytes() : 0;
}

WordTable::WordTable(const HuffmanBook& book) : words{} {
    for (const Word& word : Words(book)) {
        words[word.symbol] = static_cast<std::uint16_t>(word.bits << kLengthBits | static_cast<unsigned>(word.length));
    }
}

// Entries for windows of 0, 1, .. bits, each made from those for the bits that its first word leaves.
void EntryTable::fill(const HuffmanBook& complete) {
    book = complete;
    first_symbol = book.first_symbol();
    const Words words(book);
    std::uint64_t windows[1 << kMaxWordBits];  // those of b bits begin at 1 << b
    for (int bits = 0; bits <= kMaxWordBits; ++bits) {
        std::uint64_t* window = bits == kMaxWordBits ? entries : windows + (std::size_t{1} << bits);
        std::fill_n(window, std::size_t{1} << bits, 0);
        for (const Word& word : words) {
            const std::uint32_t rests = word.length > bits ? 0 : 1u << (bits - word.length);
            for (std::uint32_t rest = 0; rest < rests; ++rest) {
                window[word.bits | rest << word.length] = prepend(word, windows[rests + rest], book);
            }
        }
    }
}

}  // namespace laconic
