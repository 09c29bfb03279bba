// Books as they are stored.
#include <algorithm>

#include "huffman_book.h"

namespace laconic {
namespace {

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

}  // namespace

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

}  // namespace laconic
