#include "block_passes.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

template <int terms, class V, class T>
inline V weighted_sum(const V* values, const T* weights) {
    V sum = values[0] * weights[0];
    for (int k = 1; k < terms; ++k) sum += values[k] * weights[k];
    return sum;
}

// The samples of the next tile, fetched while this one is computed.
struct Ahead {
    std::uintptr_t start;
    std::int64_t row_bytes, column_bytes;

    void fetch(int row, int column) const { fetch_line(start + row * row_bytes + column * column_bytes); }
};

// The pass along columns: out[i][c] = sum over r of matrix[i][r] * in[r][c].
template <bool alternating, int N, class T>
void analyse_columns(const T (*in)[kRow<N, T>], int columns, const T* matrix, int chop, T (*out)[kRow<N, T>],
                     const Ahead& ahead) {
    // An alternating basis sees N rows as N/2 sums and N/2 differences of mirrored ones.
    constexpr int terms = alternating ? N / 2 : N, odd = alternating ? N / 2 : 0;
    for (int column = 0; column < columns; column += kLanes<T>) {
        for (int r = 0; r < N; ++r) ahead.fetch(r, column);
        Vec<T> values[N];
        for (int r = 0; r < terms; ++r) {
            values[r] = load(in[r] + column);
            if constexpr (alternating) {
                const Vec<T> mirrored = load(in[N - 1 - r] + column);
                values[odd + r] = values[r] - mirrored;
                values[r] += mirrored;
            }
        }
        for (int i = 0; i < chop; i += 2) {
            store_vector(out[i] + column, weighted_sum<terms>(values, matrix + i * N));
            if (i + 1 == chop) break;
            store_vector(out[i + 1] + column, weighted_sum<terms>(values + odd, matrix + (i + 1) * N));
        }
    }
}

template <class Sample, class Coefficient, int N>
class BlockEncoder {
    using T = Arithmetic<Sample>;

public:
    explicit BlockEncoder(const BlockJob& job)
        : job_(job),
          basis_(*static_cast<const Basis<T>*>(job.basis)),
          source_(static_cast<const Sample*>(job.source)),
          destination_(static_cast<Coefficient*>(job.destination)) {}

    bool run(std::int64_t begin, std::int64_t end) {
        for_each_tile<N>(job_, begin, end, [this](const Tile& tile) { encode(tile); });
        finish_streaming();
        return overflow_.seen();
    }

private:
    void encode(const Tile& tile) {
        read_samples(tile);
        const auto analyse = basis_.alternating ? analyse_columns<true, N, T> : analyse_columns<false, N, T>;
        analyse(samples_, tile.blocks * N, basis_.matrix, job_.chop, analysed_, samples_ahead(tile));
        for (int i = 0; i < job_.chop; ++i) {
            transform_row<N>(analysed_[i], tile.blocks, N, basis_.transposed, coefficients_[i],
                             kept_in_row(job_, i));
        }
        write_coefficients(tile);
    }

    // Only now: stores that overlap in scratch and stores past the caches do not go well together.
    void write_coefficients(const Tile& tile) {
        Coefficient* row = destination_ + coefficients_before(job_, tile.block_row);
        for (int i = 0; i < job_.chop; ++i) {
            const int kept = kept_in_row(job_, i);
            write_row(coefficients_[i], tile.blocks * kept, row + tile.first_block * kept, job_.streaming,
                      overflow_);
            row += job_.block_columns * kept;
        }
    }

    Ahead samples_ahead(const Tile& tile) const {
        constexpr std::int64_t bytes = sizeof(Sample);
        const std::int64_t row_stride = job_.image.row_stride, column_stride = job_.image.column_stride;
        const std::int64_t next = tile.last ? N * row_stride - tile.first_block * N * column_stride
                                            : tile.width * column_stride;
        return {reinterpret_cast<std::uintptr_t>(source_) + (tile.offset + next) * bytes, row_stride * bytes,
                column_stride * bytes};
    }

    // One row after the other: memory is fast when it is read in its own order.
    void read_samples(const Tile& tile) {
        const std::int64_t row_stride = job_.image.row_stride;
        const Sample* start = source_ + tile.offset;
        const bool contiguous = job_.image.column_stride == 1;
        if (!contiguous) gather(tile, start);
        for (int r = 0; r < tile.height; ++r) {
            read_row(contiguous ? start + r * row_stride : gathered_[r], tile.width, samples_[r]);
        }
        if (tile.width < tile.blocks * N || tile.height < N) extend_edges(tile);
    }

    void gather(const Tile& tile, const Sample* start) {
        const std::int64_t row_stride = job_.image.row_stride, column_stride = job_.image.column_stride;
        for (int c = 0; c < tile.width; ++c) {
            for (int r = 0; r < tile.height; ++r) gathered_[r][c] = start[r * row_stride + c * column_stride];
        }
    }

    void extend_edges(const Tile& tile) {
        const int columns = tile.blocks * N;
        for (int r = 0; r < tile.height; ++r) {
            for (int c = tile.width; c < columns; ++c) samples_[r][c] = samples_[r][tile.width - 1];
        }
        for (int r = tile.height; r < N; ++r) {
            __builtin_memcpy(samples_[r], samples_[tile.height - 1], columns * sizeof(T));
        }
    }

    const BlockJob& job_;
    const Basis<T>& basis_;
    const Sample* source_;
    Coefficient* destination_;
    Overflow overflow_;
    alignas(64) Sample gathered_[N][kTile<N>];
    alignas(64) T samples_[N][kRow<N, T>];
    alignas(64) T analysed_[N][kRow<N, T>];
    T (&coefficients_)[N][kRow<N, T>] = samples_;  // no longer needed when these are made
};

}  // namespace

bool block_encode(const BlockJob& job, std::int64_t begin, std::int64_t end) {
    return run_for_types<BlockEncoder>(job, begin, end);
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
