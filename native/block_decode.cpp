#include <type_traits>

#include "block_passes.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

// The pass along columns: out[n][c] = sum over i < chop of matrix[n][i] * in[i][c].
//
// The even and the odd basis functions are summed apart. Where they alternate, the two sums give a
// row and its mirror image. `write(row, column, values)` takes a vector of a row.
template <bool alternating, int N, class T, class Write>
void synthesise_columns(const T (*in)[kRow<N, T>], int columns, const T* transposed, int chop, Write write) {
    constexpr int group = 4;  // output rows at a time
    for (int column = 0; column < columns; column += kLanes<T>) {
        for (int first = 0; first < (alternating ? N / 2 : N); first += group) {
            Vec<T> even[group] = {}, odd[group] = {};
            for (int i = 0; i < chop; i += 2) {
                const Vec<T> values = load(in[i] + column);
                for (int n = 0; n < group; ++n) even[n] += values * transposed[i * N + first + n];
                if (i + 1 == chop) break;
                const Vec<T> next = load(in[i + 1] + column);
                for (int n = 0; n < group; ++n) odd[n] += next * transposed[(i + 1) * N + first + n];
            }
            for (int n = 0; n < group; ++n) {
                const int row = first + n;
                write(row, column, even[n] + odd[n]);
                if constexpr (alternating) write(N - 1 - row, column, even[n] - odd[n]);
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
        for_each_tile<N>(job_, begin, end, [this](const Tile& tile) { decode(tile); });
        finish_streaming();
        return overflow_.seen();
    }

private:
    void decode(const Tile& tile) {
        const Coefficient* row = source_ + coefficients_before(job_, tile.block_row);
        for (int i = 0; i < job_.chop; ++i) {
            const int kept = kept_in_row(job_, i);
            const Coefficient* part = row + tile.first_block * kept;
            read_row(part, tile.blocks * kept, coefficients_);
            fetch_ahead(tile, part, kept);
            transform_row<N>(coefficients_, tile.blocks, kept, basis_.transposed, synthesised_[i], N);
            row += job_.block_columns * kept;
        }
        if (streams_whole_lines(tile)) {
            Sample* start = destination_ + tile.offset;
            const std::int64_t row_stride = job_.image.row_stride;
            synthesise(tile, [=](int row, int column, Vec<T> values) {
                stream_vector(start + row * row_stride + column, pack(values, start));
            });
        } else {
            synthesise(tile, [&](int row, int column, Vec<T> values) { store_vector(samples_[row] + column, values); });
            write_samples(tile);
        }
    }

    template <class Write>
    void synthesise(const Tile& tile, Write write) const {
        const int columns = tile.blocks * N;
        if (basis_.alternating) {
            synthesise_columns<true, N>(synthesised_, columns, basis_.transposed, job_.chop, write);
        } else {
            synthesise_columns<false, N>(synthesised_, columns, basis_.transposed, job_.chop, write);
        }
    }

    // Whether every vector of samples is a cache line: then it need not wait in scratch for its neighbours.
    bool streams_whole_lines(const Tile& tile) const {
        constexpr int lanes = kLanes<T>;
        constexpr bool lines = std::is_same_v<Sample, T> && lanes * sizeof(Sample) == 64;
        const ImageLayout& image = job_.image;
        return lines && job_.streaming && image.column_stride == 1 && image.row_stride % lanes == 0 && tile.height == N &&
               tile.width % lanes == 0 && elements_to_alignment(destination_ + tile.offset, lanes) == 0;
    }

    // The same row of the next tile.
    void fetch_ahead(const Tile& tile, const Coefficient* part, int kept) const {
        const std::int64_t next = tile.last ? coefficients_before(job_, 1) - tile.first_block * kept
                                            : tile.blocks * kept;
        const auto start = reinterpret_cast<std::uintptr_t>(part) + next * sizeof(Coefficient);
        const std::size_t bytes = tile.blocks * kept * sizeof(Coefficient);
        for (std::size_t line = 0; line < bytes; line += 64) fetch_line(start + line);
    }

    // One row after the other: memory is fast when it is written in its own order.
    void write_samples(const Tile& tile) {
        const std::int64_t row_stride = job_.image.row_stride;
        Sample* start = destination_ + tile.offset;
        const bool contiguous = job_.image.column_stride == 1;
        for (int r = 0; r < tile.height; ++r) {
            write_row(samples_[r], tile.width, contiguous ? start + r * row_stride : packed_[r],
                      job_.streaming && contiguous, overflow_);
        }
        if (!contiguous) scatter(tile, start);
    }

    void scatter(const Tile& tile, Sample* start) const {
        const std::int64_t row_stride = job_.image.row_stride, column_stride = job_.image.column_stride;
        for (int c = 0; c < tile.width; ++c) {
            for (int r = 0; r < tile.height; ++r) start[r * row_stride + c * column_stride] = packed_[r][c];
        }
    }

    const BlockJob& job_;
    const Basis<T>& basis_;
    const Coefficient* source_;
    Sample* destination_;
    Overflow overflow_;
    alignas(64) T coefficients_[kTile<N> + kLanes<T>];
    alignas(64) T synthesised_[N][kRow<N, T>];
    alignas(64) T samples_[N][kRow<N, T>];
    alignas(64) Sample packed_[N][kTile<N>];
};

}  // namespace

bool block_decode(const BlockJob& job, std::int64_t begin, std::int64_t end) {
    return run_for_types<BlockDecoder>(job, begin, end);
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
