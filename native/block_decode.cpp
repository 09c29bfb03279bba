#include "block_passes.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

// The pass along columns: rows[n][c] = sum over i < chop of matrix[n][i] * in[i][c].
//
// The even and the odd basis functions are summed apart. Where they alternate, the two sums give a
// row and its mirror image.
template <bool alternating, int N, class Sample, class T>
void synthesise_columns(const T (*in)[kTile<N>], int columns, const T* transposed, int chop,
                        Sample* const* rows, bool streaming, Writer<Sample>& writer) {
    constexpr int group = 4;  // output rows at a time
    using V = Vec<T>;
    for (int column = 0; column < columns; column += kLanes<T>) {
        for (int first = 0; first < (alternating ? N / 2 : N); first += group) {
            V even[group] = {}, odd[group] = {};
            for (int i = 0; i < chop; i += 2) {
                const V values = load(in[i] + column);
                for (int n = 0; n < group; ++n) even[n] += values * transposed[i * N + first + n];
                if (i + 1 == chop) break;
                const V next = load(in[i + 1] + column);
                for (int n = 0; n < group; ++n) odd[n] += next * transposed[(i + 1) * N + first + n];
            }
            for (int n = 0; n < group; ++n) {
                const int row = first + n;
                writer.write(rows[row] + column, even[n] + odd[n], streaming);
                if constexpr (alternating) {
                    writer.write(rows[N - 1 - row] + column, even[n] - odd[n], streaming);
                }
            }
        }
    }
}

template <class Sample, class Coefficient, int N>
class BlockDecoder {
    using T = Arithmetic<Sample>;

public:
    explicit BlockDecoder(const BlockJob& job)
        : job_(job),
          basis_(*static_cast<const Basis<T>*>(job.basis)),
          source_(static_cast<const Coefficient*>(job.source)),
          destination_(static_cast<Sample*>(job.destination)) {}

    bool run(std::int64_t begin, std::int64_t end) {
        for_each_tile<N, T>(job_, begin, end, [this](const Tile& tile) { decode(tile); });
        finish_streaming();
        return writer_.overflowed();
    }

private:
    void decode(const Tile& tile) {
        std::int64_t begin = coefficients_before(job_, tile.block_row);
        for (int i = 0; i < job_.chop; ++i) {
            const int kept = kept_in_row(job_, i);
            const T* coefficients =
                load_row(source_ + begin + tile.first_block * kept, tile.blocks * kept, coefficients_);
            transform_row<N>(tile.blocks, coefficients, kept, kept, basis_.transposed, synthesised_[i], N);
            begin += job_.block_columns * kept;
        }
        write_tile(tile);
    }

    void write_tile(const Tile& tile) {
        const std::int64_t stride = job_.image.row_stride;
        Sample* start = destination_ + tile.offset;
        if (tile.whole_vectors && tile.height == N) {
            synthesise(tile, start, stride, writer_, job_.streaming && is_aligned(start));
        } else {
            Writer<T> unconverted;
            synthesise(tile, samples_[0], kTile<N>, unconverted, false);
            for (int r = 0; r < tile.height; ++r) write_part(start + r * stride, samples_[r], tile.width);
        }
    }

    template <class Output>
    void synthesise(const Tile& tile, Output* to, std::int64_t row_stride, Writer<Output>& writer,
                    bool streaming) {
        Output* rows[N];
        for (int r = 0; r < N; ++r) rows[r] = to + r * row_stride;
        const auto pass = basis_.alternating ? synthesise_columns<true, N, Output, T>
                                             : synthesise_columns<false, N, Output, T>;
        pass(synthesised_, tile.blocks * N, basis_.transposed, job_.chop, rows, streaming, writer);
    }

    // Whether every row of the image begins where a cache line does, as this one.
    bool is_aligned(const Sample* row) const {
        const auto stride = static_cast<std::uintptr_t>(job_.image.row_stride) * sizeof(Sample);
        return (reinterpret_cast<std::uintptr_t>(row) | stride) % 64 == 0;
    }

    // Crops, and serves strides other than 1.
    void write_part(Sample* to, const T* values, int width) {
        const std::int64_t stride = job_.image.column_stride;
        if (stride == 1) return writer_.write_row(to, values, width, false);
        writer_.write_row(packed_, values, width, false);
        for (int c = 0; c < width; ++c) to[c * stride] = packed_[c];
    }

    const BlockJob& job_;
    const Basis<T>& basis_;
    const Coefficient* source_;
    Sample* destination_;
    Writer<Sample> writer_;
    alignas(64) T coefficients_[kTile<N> + kLanes<T>];
    alignas(64) T synthesised_[N][kTile<N>];
    alignas(64) T samples_[N][kTile<N>];
    alignas(64) Sample packed_[kTile<N>];
};

}  // namespace

bool block_decode(const BlockJob& job, std::int64_t begin, std::int64_t end) {
    return run_for_types<BlockDecoder>(job, begin, end);
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
