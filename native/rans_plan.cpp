#include "rans_plan.h"

#include <cstring>
#include <mutex>

namespace laconic {
namespace {

// A lane takes three bytes more than it writes: so many bytes of words are worth 2, 4, 8, 16, 32 lanes.
constexpr std::int64_t kWorthLanes[] = {480, 1200, 3200, 7680, 15360};
constexpr int kStateBytes = 4;

// The symbol of a smaller alphabet for one of the largest.
int narrowed(int symbol, int direct) {
    constexpr int most = 1 << kRansMostDirect;
    if (symbol < 1 << direct) return symbol;
    if (symbol >= most) return (1 << direct) + symbol - most + 4 * (kRansMostDirect - direct);
    const int exponent = 31 - __builtin_clz(static_cast<unsigned>(symbol));
    return (1 << direct) + 4 * (exponent - direct) + ((symbol >> (exponent - 2)) & 3);
}

RansPlan plan_with(const std::uint64_t* counts, const RansBook& book, std::size_t stored, std::int64_t chunks) {
    const std::int64_t cost = book.cost(counts);
    RansPlan plan{cost >= 0, cost >> 3, 0, static_cast<std::int64_t>(stored), chunks};
    for (int symbol = 1 << book.direct; book.has_extra && symbol < book.alphabet; ++symbol) {
        plan.extra += static_cast<std::int64_t>(counts[symbol]) * rans_extra_bits(symbol, book.direct);
    }
    return plan;
}

int most_direct(int itemsize) { return itemsize == 1 ? 0 : kRansMostDirect; }

}  // namespace

bool rans_in_words(const RansCodes& codes, int itemsize) {
    const auto* bytes = static_cast<const std::uint8_t*>(codes.codes);
    const auto rest = static_cast<std::size_t>((codes.count - 1) * itemsize);
    return codes.count > 1 && std::memcmp(bytes, bytes + itemsize, rest) != 0;
}

void RansCounts::fill(const RansJob& job, int threads) {
    const auto count = LACONIC_CHOOSE_KERNEL(rans_count);
    const int alphabet = rans_alphabet(job.itemsize, most_direct(job.itemsize));
    std::memset(of, 0, static_cast<std::size_t>(alphabet) * sizeof of[0]);
    if (job.chunks == 1) return count(job, 0, 1, of);
    std::mutex mutex;
    over_ranges(job.chunks, threads, [&](std::int64_t begin, std::int64_t end) {
        std::uint64_t some[kRansSymbols] = {};
        count(job, begin, end, some);
        std::lock_guard lock(mutex);
        for (int symbol = 0; symbol < alphabet; ++symbol) of[symbol] += some[symbol];
    });
}

const std::uint64_t* RansCounts::with_direct(int itemsize, int direct, std::uint64_t* to) const {
    if (direct == most_direct(itemsize)) return of;
    std::memset(to, 0, static_cast<std::size_t>(rans_alphabet(itemsize, direct)) * sizeof to[0]);
    for (int symbol = 0; symbol < rans_alphabet(itemsize, kRansMostDirect); ++symbol) {
        if (of[symbol] > 0) to[narrowed(symbol, direct)] += of[symbol];
    }
    return to;
}

bool RansCounts::has_from(int symbol, int itemsize) const {
    for (; symbol < rans_alphabet(itemsize, kRansMostDirect); ++symbol) {
        if (of[symbol] > 0) return true;
    }
    return false;
}

int RansPlan::lanes_log() const {
    const std::int64_t each = words / chunks;
    int log = kRansMostLanesLog;
    while (log > 0 && each < kWorthLanes[log - 1]) --log;
    return log;
}

std::int64_t RansPlan::estimate() const {
    return 1 + stored + words + chunks * ((kStateBytes - 1) << lanes_log()) + (extra + 7) / 8;
}

RansPlan plan_own(const RansCounts& counts, int itemsize, std::int64_t chunks, RansBook& book, RansStored& stored) {
    RansPlan best{};
    counts.over_directs(itemsize, [&](int direct) {
        std::uint64_t memory[kRansSymbols];
        const std::uint64_t* some = counts.with_direct(itemsize, direct, memory);
        RansBook other;
        RansStored other_stored;
        make_rans_book(some, itemsize, direct, other, other_stored);
        const RansPlan plan = plan_with(some, other, other_stored.size, chunks);
        if (best.possible && plan.estimate() >= best.estimate() - (best.estimate() >> 8)) return;
        best = plan;
        book = other;
        stored = other_stored;
    });
    return best;
}

RansPlan plan_shared(const RansCounts& counts, int itemsize, std::int64_t chunks, const RansBook& book) {
    std::uint64_t memory[kRansSymbols];
    return plan_with(counts.with_direct(itemsize, book.direct, memory), book, 0, chunks);
}

}  // namespace laconic
