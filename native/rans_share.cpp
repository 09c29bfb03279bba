// A book for many tensors at once, where it saves more than it takes.
#include <algorithm>
#include <cstring>

#include "rans_plan.h"

namespace laconic {
namespace {

// In the buffer for the wire, books have a length beside them.
constexpr std::int64_t kBytesOfLength = 8;

static_assert(kMostRansBook == kRansStoredBytes);

struct CountedTensor {
    RansCounts counts;
    std::int64_t chunks;
    std::int64_t alone;  // the bytes of its stream, if nothing is shared
};

CountedTensor count_tensor(const RansCodes& codes, int itemsize) {
    CountedTensor counted;
    RansJob job{};
    job.codes = const_cast<void*>(codes.codes);
    set_chunks(job, codes.count, itemsize);
    counted.counts.fill(job, 1);
    counted.chunks = job.chunks;
    RansBook book;
    RansStored stored;
    const RansPlan plan = plan_own(counted.counts, itemsize, job.chunks, book, stored);
    counted.alone = std::min(plan.estimate(), 1 + codes.count * itemsize);
    return counted;
}

// By how many bytes all streams together would be smaller.
std::int64_t saved_by(const CountedTensor* batch, std::int64_t size, int itemsize, const RansBook& book) {
    std::int64_t saved = 0;
    for (std::int64_t i = 0; i < size; ++i) {
        const RansPlan plan = plan_shared(batch[i].counts, itemsize, batch[i].chunks, book);
        if (plan.possible) saved += std::max(batch[i].alone - plan.estimate(), std::int64_t{0});
    }
    return saved;
}

}  // namespace

std::int64_t rans_share(const RansCodes* batch, std::int64_t size, int itemsize, std::uint8_t* book, int threads) {
    const auto counted = rans_allocate<CountedTensor>(size);
    const auto worded = rans_allocate<RansCodes>(size);
    if (!counted || !worded) return -1;
    std::int64_t tensors = 0, codes = 0;
    for (std::int64_t i = 0; i < size; ++i) {
        if (!rans_in_words(batch[i], itemsize)) continue;
        worded[tensors++] = batch[i];
        codes += batch[i].count;
    }
    if (tensors < 2) return 0;
    over_ranges(tensors, codes < 256 * 1024 ? 1 : threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) counted[i] = count_tensor(worded[i], itemsize);
    });
    RansCounts all{};
    const int alphabet = rans_alphabet(itemsize, itemsize == 1 ? 0 : kRansMostDirect);
    for (std::int64_t i = 0; i < tensors; ++i) {
        for (int symbol = 0; symbol < alphabet; ++symbol) all.of[symbol] += counted[i].counts.of[symbol];
    }
    std::int64_t best = 0, written = 0;
    all.over_directs(itemsize, [&](int direct) {
        std::uint64_t memory[kRansSymbols];
        RansBook shared;
        RansStored stored;
        make_rans_book(all.with_direct(itemsize, direct, memory), itemsize, direct, shared, stored);
        const auto stored_size = static_cast<std::int64_t>(stored.size);
        const std::int64_t saved = saved_by(counted.get(), tensors, itemsize, shared) - kBytesOfLength - stored_size;
        if (saved <= best) return;
        best = saved;
        written = stored_size;
        std::memcpy(book, stored.bytes, stored.size);
    });
    return written;
}

}  // namespace laconic
