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

}  // namespace

int HuffmanBook::longest_word() const { return *std::max_element(lengths, lengths + kSymbols); }

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

}  // namespace laconic
