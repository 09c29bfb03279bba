#include "block.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "block_job.h"
#include "threads.h"

namespace laconic {
namespace {

using Kernel = bool (*)(const BlockJob&, std::int64_t begin, std::int64_t end);

// Fewer samples than this are done before another thread is awake.
constexpr std::int64_t kSamplesWorthThreads = 128 * 1024;
constexpr std::int64_t kSamplesAtOnce = 16 * 1024;

// Where source and result together take more than this, the result is written past the caches. What
// the system says of its last-level cache is no help: on virtual machines it is wrong.
constexpr std::int64_t kStreamingBytes = 8 << 20;

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

void check(const ImageTensor& image, const BlockCodec& codec, Dtype coefficient_dtype) {
    const int n = codec.block;
    require(n == 4 || n == 8 || n == 16 || n == 32, "block: expected 4, 8, 16 or 32");
    require(1 <= codec.chop && codec.chop <= n, "chop: expected 1 to block");
    require(Dtype::float32 <= image.dtype && image.dtype <= Dtype::uint8, "dtype: unknown code");
    require(coefficient_dtype == (image.dtype == Dtype::uint8 ? Dtype::float32 : image.dtype),
            "dtype: coefficients are of the image's type, float32 for uint8");
    const std::size_t dims = image.shape.size();
    require(2 <= dims && dims <= kMaxDims, "shape: expected 2 to 64 dimensions");
    require(image.strides.size() == dims, "strides: expected as many as dimensions");
    require(*std::min_element(image.shape.begin(), image.shape.end()) >= 0, "shape: negative size");
}

std::int64_t bytes_per_element(Dtype dtype) {
    switch (dtype) {
        case Dtype::float64: return 8;
        case Dtype::float32: return 4;
        case Dtype::uint8: return 1;
        default: return 2;
    }
}

ImageLayout layout_of(const ImageTensor& image) {
    const std::size_t leading = image.shape.size() - 2;
    ImageLayout layout;
    layout.height = image.shape[leading];
    layout.width = image.shape[leading + 1];
    layout.row_stride = image.strides[leading];
    layout.column_stride = image.strides[leading + 1];
    layout.leading_dims = static_cast<int>(leading);
    std::copy_n(image.shape.begin(), leading, layout.leading_sizes);
    std::copy_n(image.strides.begin(), leading, layout.leading_strides);
    return layout;
}

// Whether entry (f, x) = matrix[f * function_step + x * sample_step] is even in x about the centre for
// even f and odd for odd f, to the precision of T.
template <class T>
bool is_alternating(const BlockCodec& codec, int function_step, int sample_step) {
    const int n = codec.block;
    double largest = 0;
    for (int k = 0; k < n * n; ++k) largest = std::max(largest, std::fabs(codec.matrix[k]));
    const double tolerance = 4 * std::numeric_limits<T>::epsilon() * largest;
    for (int f = 0; f < codec.chop; ++f) {
        for (int x = 0; x < n / 2; ++x) {
            const double left = codec.matrix[f * function_step + x * sample_step];
            const double right = codec.matrix[f * function_step + (n - 1 - x) * sample_step];
            if (!(std::fabs(f % 2 == 0 ? left - right : left + right) <= tolerance)) return false;
        }
    }
    return true;
}

template <class T>
void prepare(Basis<T>& basis, const BlockCodec& codec, bool alternating) {
    const int n = codec.block;
    basis.alternating = alternating;
    for (int row = 0; row < n; ++row) {
        for (int column = 0; column < n; ++column) {
            const T entry = static_cast<T>(codec.matrix[row * n + column]);
            basis.matrix[row * n + column] = entry;
            basis.transposed[column * n + row] = entry;
        }
    }
}

BlockJob job_of(const ImageTensor& image, const BlockCodec& codec, Dtype coefficient_dtype) {
    BlockJob job;
    job.image_dtype = image.dtype;
    job.image = layout_of(image);
    job.block = codec.block;
    job.chop = codec.chop;
    job.triangle = codec.triangle;
    job.block_rows = (job.image.height + codec.block - 1) / codec.block;
    job.block_columns = (job.image.width + codec.block - 1) / codec.block;
    job.images = 1;
    for (int dim = 0; dim < job.image.leading_dims; ++dim) job.images *= job.image.leading_sizes[dim];
    const std::int64_t samples = job.images * job.image.height * job.image.width;
    const std::int64_t coefficients = coefficients_before(job, job.images * job.block_rows);
    job.streaming = samples * bytes_per_element(image.dtype) +
                        coefficients * bytes_per_element(coefficient_dtype) > kStreamingBytes;
    return job;
}

struct SharedJob {
    const BlockJob& job;
    Kernel kernel;
    std::atomic<bool> overflowed{false};
};

bool run(const BlockJob& job, Kernel kernel, int threads) {
    const std::int64_t block_rows = job.images * job.block_rows;
    const std::int64_t samples = job.image.width * job.block;
    if (block_rows == 0 || samples == 0) return false;
    SharedJob shared{job, kernel};
    const auto body = [](void* context, std::int64_t begin, std::int64_t end) {
        auto& shared = *static_cast<SharedJob*>(context);
        if (shared.kernel(shared.job, begin, end)) shared.overflowed = true;
    };
    if (block_rows * samples < kSamplesWorthThreads) threads = 1;
    parallel_for(block_rows, std::max<std::int64_t>(1, kSamplesAtOnce / samples), threads, body, &shared);
    return shared.overflowed;
}

template <class T>
bool run_in(BlockJob& job, const BlockCodec& codec, bool encoding, int threads) {
    const int n = codec.block;
    Basis<T> basis;
    prepare(basis, codec, encoding ? is_alternating<T>(codec, n, 1) : is_alternating<T>(codec, 1, n));
    job.basis = &basis;
    const Kernel kernel = encoding ? LACONIC_CHOOSE_KERNEL(block_encode) : LACONIC_CHOOSE_KERNEL(block_decode);
    return run(job, kernel, threads);
}

bool transform(BlockJob& job, const BlockCodec& codec, bool encoding, int threads) {
    return job.image_dtype == Dtype::float64 ? run_in<double>(job, codec, encoding, threads)
                                             : run_in<float>(job, codec, encoding, threads);
}

}  // namespace

std::int64_t ImageLayout::offset_of(std::int64_t image) const {
    std::int64_t offset = 0;
    for (int dim = leading_dims - 1; dim >= 0; --dim) {
        offset += image % leading_sizes[dim] * leading_strides[dim];
        image /= leading_sizes[dim];
    }
    return offset;
}

bool encode_blocks(const ImageTensor& image, const BlockCodec& codec, void* coefficients,
                   Dtype coefficient_dtype, int threads) {
    check(image, codec, coefficient_dtype);
    BlockJob job = job_of(image, codec, coefficient_dtype);
    job.source = image.data;
    job.destination = coefficients;
    return transform(job, codec, true, threads);
}

bool decode_blocks(const void* coefficients, Dtype coefficient_dtype, const BlockCodec& codec,
                   const ImageTensor& image, int threads) {
    check(image, codec, coefficient_dtype);
    BlockJob job = job_of(image, codec, coefficient_dtype);
    job.source = coefficients;
    job.destination = image.data;
    return transform(job, codec, false, threads);
}

}  // namespace laconic
