#include "affine.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "threads.h"

namespace laconic {
namespace {

constexpr std::int64_t kElementsWorthThreads = 64 * 1024;
constexpr std::int64_t kCachedScope = 64 * 1024;  // elements that are read twice from a cache
constexpr std::int64_t kStreamingBytes = 16 << 20;

std::int64_t bytes_per_element(Dtype dtype) {
    return dtype == Dtype::float64 ? 8 : dtype == Dtype::float32 ? 4 : 2;
}

void check(const AffineJob& job) {
    const bool sound = job.count > 0 && job.line > 0 && job.row > 0 && 0 < job.group && job.group <= job.row &&
                       job.count % job.line == 0 && job.count % job.row == 0 && 0 <= job.width && job.width <= 8 &&
                       (job.group == job.row || (job.row == job.line && job.group <= kPieceCodes / kPlaneCodes));
    if (!sound) throw std::invalid_argument("affine: sizes that contradict each other");
}

// Lines of whole blocks lie as one line of them would, and so do rows of whole groups.
void join_lines(AffineJob& job) {
    const bool joins = job.width == 0 || job.line % kPlaneCodes == 0;
    if (job.group < job.row) {
        if (joins && job.row % job.group == 0) job.row = job.line = job.count;
        const std::int64_t common = std::lcm<std::int64_t>(job.group, kPlaneCodes);
        job.segment = std::max<std::int64_t>(1, kPieceCodes / 2 / common) * common;
    } else {
        if (joins) job.line = job.count;
        job.segment = kPieceCodes / 2;
    }
}

struct Run {
    const AffineJob& job;
    std::atomic<bool> fits{true};
};

template <class Body>
void run_units(const AffineJob& job, int threads, Body body, Run& run) {
    const std::int64_t units = job.units(), each = job.unit > 0 ? job.unit : std::min(job.segment, job.line);
    if (job.count < kElementsWorthThreads) threads = 1;
    const std::int64_t least = std::max<std::int64_t>(1, 4 * kPieceCodes / each);
    const std::int64_t grain = threads == 1 ? units : std::max(least, units / (threads * 8));
    parallel_for(units, grain, threads, body, &run);
}

void encode_range(void* context, std::int64_t begin, std::int64_t end) {
    Run& run = *static_cast<Run*>(context);
    if (!LACONIC_CHOOSE_KERNEL(encode_affine)(run.job, begin, end)) run.fits = false;
}

void decode_range(void* context, std::int64_t begin, std::int64_t end) {
    LACONIC_CHOOSE_KERNEL(decode_affine)(static_cast<Run*>(context)->job, begin, end);
}

// Large scopes are measured in pieces, side by side, before any of it is quantised.
struct Measuring {
    const AffineJob& job;
    std::int64_t pieces;  // of a scope
    std::vector<Reach> found;
};

void measure_range(void* context, std::int64_t begin, std::int64_t end) {
    auto& m = *static_cast<Measuring*>(context);
    const auto* values = static_cast<const std::uint8_t*>(m.job.floats_in);
    for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t from = i % m.pieces * kCachedScope, count = std::min(kCachedScope, m.job.row - from);
        const std::int64_t place = i / m.pieces * m.job.row + from;
        m.found[i] = LACONIC_CHOOSE_KERNEL(reach_of)(values + place * bytes_per_element(m.job.dtype), m.job.dtype, count);
    }
}

void find_large_grids(const AffineJob& job, int threads) {
    const std::int64_t scopes = job.count / job.row, pieces = (job.row + kCachedScope - 1) / kCachedScope;
    Measuring m{job, pieces, std::vector<Reach>(scopes * pieces)};
    parallel_for(scopes * pieces, 1, threads, measure_range, &m);
    for (std::int64_t scope = 0; scope < scopes; ++scope) {
        Reach whole = m.found[scope * pieces];
        for (std::int64_t i = scope * pieces; i < (scope + 1) * pieces; ++i) {
            const Reach piece = m.found[i];
            whole.low = piece.low < whole.low || std::isnan(piece.low) ? piece.low : whole.low;
            whole.high = piece.high > whole.high || std::isnan(piece.high) ? piece.high : whole.high;
        }
        LACONIC_CHOOSE_KERNEL(set_grid)(job, scope, whole);
    }
}

}  // namespace

bool affine_encode(AffineJob job, int threads) {
    check(job);
    join_lines(job);
    if (job.floats_in != nullptr) {
        const bool large = job.group == job.row && job.row > kCachedScope;
        if (large) find_large_grids(job, threads);
        job.finds_grid = !large;
        if (!large && job.group == job.row) job.unit = job.row;
    }
    Run run{job};
    run_units(job, threads, encode_range, run);
    return run.fits;
}

void affine_decode(AffineJob job, int threads) {
    check(job);
    join_lines(job);
    job.streaming = job.floats_out != nullptr && job.count * bytes_per_element(job.dtype) > kStreamingBytes;
    Run run{job};
    run_units(job, threads, decode_range, run);
}

}  // namespace laconic
