#include "block_passes.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

template <int terms, class V, class T>
inline V weighted_sum(const V* values, const T* weights) {
    V sum = values[0] * weights[0];
    for (int k = 1; k < terms; ++k) sum += values[k] * weights[k];
    return sum;
}

// The pass along columns: out[i][c] = sum over r of matrix[i][r] * rows[r][c].
template <bool alternating, int N, class Sample, class T>
void analyse_columns(const Sample* const* rows, int columns, const T* matrix, int chop, T (*out)[kTile<N>]) {
    // An alternating basis sees the rows as N/2 sums and N/2 differences of mirrored ones.
    constexpr int terms = alternating ? N / 2 : N, odd = alternating ? N / 2 : 0;
    using V = Vec<T>;
    for (int column = 0; column < columns; column += kLanes<T>) {
        V values[N];
        for (int r = 0; r < N; ++r) values[r] = load(rows[r] + column);
        if constexpr (alternating) {
            V folded[N];
            for (int k = 0; k < N / 2; ++k) {
                folded[k] = values[k] + values[N - 1 - k];
                folded[odd + k] = values[k] - values[N - 1 - k];
            }
            for (int r = 0; r < N; ++r) values[r] = folded[r];
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
        for_each_tile<N, T>(job_, begin, end, [this](const Tile& tile) { encode(tile); });
        finish_streaming();
        return writer_.overflowed();
    }

private:
    void encode(const Tile& tile) {
        const Sample* rows[N];
        find_rows(tile, rows);
        const auto analyse = basis_.alternating ? analyse_columns<true, N, Sample, T>
                                                : analyse_columns<false, N, Sample, T>;
        analyse(rows, tile.blocks * N, basis_.matrix, job_.chop, analysed_);
        std::int64_t begin = coefficients_before(job_, tile.block_row);
        for (int i = 0; i < job_.chop; ++i) {
            const int kept = kept_in_row(job_, i);
            transform_row<N>(tile.blocks, analysed_[i], N, N, basis_.transposed, row_, kept);
            writer_.write_row(destination_ + begin + tile.first_block * kept, row_, tile.blocks * kept,
                              job_.streaming);
            begin += job_.block_columns * kept;
        }
    }

    // Past the image's edge, its last row and column go on.
    void find_rows(const Tile& tile, const Sample** rows) {
        const ImageLayout& image = job_.image;
        for (int r = 0; r < N; ++r) {
            rows[r] = source_ + tile.offset + smaller(r, tile.height - 1) * image.row_stride;
            if (tile.whole_vectors) continue;
            for (int c = 0; c < tile.width; ++c) gathered_[r][c] = rows[r][c * image.column_stride];
            for (int c = tile.width; c < tile.blocks * N; ++c) gathered_[r][c] = gathered_[r][tile.width - 1];
            rows[r] = gathered_[r];
        }
    }

    const BlockJob& job_;
    const Basis<T>& basis_;
    const Sample* source_;
    Coefficient* destination_;
    Writer<Coefficient> writer_;
    alignas(64) Sample gathered_[N][kTile<N>];
    alignas(64) T analysed_[N][kTile<N>];
    alignas(64) T row_[kTile<N> + N];
};

}  // namespace

bool block_encode(const BlockJob& job, std::int64_t begin, std::int64_t end) {
    return run_for_types<BlockEncoder>(job, begin, end);
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
