// Whatever bytes come, the decoders of `bound`, `lorenzo` and `bitpack` neither read nor write beyond what they are
// given; and what the encoders wrote comes back.
//
//   | 8 bytes: what to do, and with which sizes | a stream, or floats or codes to make one of |
#include "../codes.h"

#include <cmath>
#include <vector>

#include "fuzz.h"

using namespace laconic;

namespace {

constexpr std::int64_t kMost = 72 * 1024;  // enough for several threads

struct Task {
    CodeJob job;
    bool packed, floats, encodes;
    int threads;
    std::int64_t scopes, element_bytes;

    explicit Task(const std::uint8_t* head) {
        job.code_bytes = 1 << head[0] % 3;
        job.dims = head[0] >> 2 & 3;
        job.zigzag = (head[0] >> 4 & 1) == 0;
        packed = (head[0] >> 5 & 1) == 0;
        floats = (head[0] >> 6 & 1) != 0;
        encodes = (head[0] >> 7 & 1) != 0;
        job.dtype = static_cast<Dtype>(head[1] & 3);
        threads = 1 + (head[1] >> 2 & 1);
        const bool by_row = (head[1] >> 3 & 1) != 0;
        element_bytes = job.dtype == Dtype::float64 ? 8 : job.dtype == Dtype::float32 ? 4 : 2;
        job.width = 1 + (head[2] | head[3] << 8);
        job.height = job.dims >= 2 ? 1 + head[4] : 1;
        job.depth = job.dims == 3 ? 1 + head[5] : 1;
        job.count = job.width * job.height * job.depth * (1 + head[6] % 8);
        scopes = by_row ? job.count / job.width : 1;
        job.scope = job.count / scopes;
        const std::int64_t top = job.code_bytes == 4 ? 1 << 24 : (1 << (8 * job.code_bytes - 1)) - 1;
        job.top_code = static_cast<std::int32_t>(top);
        floats = floats && job.zigzag;  // the quantiser's codes are signed
    }
    std::int64_t chunks() const { return (job.count + kChunkCodes - 1) / kChunkCodes; }
    std::int64_t stream_capacity() const {  // as ops/bitpack.py allocates it
        const std::int64_t blocks = kChunkCodes / kBlockCodes;
        return 1 + chunks() * (4 + blocks / 8 + blocks + kChunkCodes * job.code_bytes) + 64;
    }
};

template <class T>
std::vector<T> grid(const Task& task, std::uint8_t exponent, double times) {
    return std::vector<T>(task.scopes, static_cast<T>(std::ldexp(times, exponent % 64 - 40)));
}

// Steps and bounds, of the arithmetic that the elements have.
struct Grid {
    std::vector<float> steps, bounds;
    std::vector<double> wide_steps, wide_bounds;

    Grid(Task& task, std::uint8_t exponent) {
        if (task.job.dtype == Dtype::float64) {
            wide_steps = grid<double>(task, exponent, 1.5), wide_bounds = grid<double>(task, exponent, 0.75);
            task.job.steps = wide_steps.data(), task.job.bounds = wide_bounds.data();
        } else {
            steps = grid<float>(task, exponent, 1.5), bounds = grid<float>(task, exponent, 0.75);
            task.job.steps = steps.data(), task.job.bounds = bounds.data();
        }
    }
};

void decode(Task task, const std::uint8_t* data, std::int64_t size, std::uint8_t exponent) {
    const Grid grid(task, exponent);
    const Memory out = memory_of(task.job.count * (task.floats ? task.element_bytes : task.job.code_bytes));
    (task.floats ? task.job.floats_out : task.job.codes_out) = out.get();
    const Memory residuals = filled_with(data, size, task.packed ? 0 : task.job.count * task.job.code_bytes);
    const Memory stream = filled_with(data, size, size);
    if (!task.packed) task.job.codes_in = residuals.get();
    decode_stream(task.job, task.packed ? stream.get() : nullptr, size, task.threads);
}

double element(const std::uint8_t* values, Dtype dtype, std::int64_t i) {
    if (dtype == Dtype::float64) return reinterpret_cast<const double*>(values)[i];
    if (dtype == Dtype::float32) return reinterpret_cast<const float*>(values)[i];
    const std::uint16_t half = reinterpret_cast<const std::uint16_t*>(values)[i];
    if (dtype == Dtype::bfloat16) {
        const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
        float value;
        std::memcpy(&value, &bits, 4);
        return value;
    }
    const int exponent = half >> 10 & 31, mantissa = half & 1023;
    const double value = exponent == 31  ? (mantissa ? NAN : INFINITY)
                         : exponent == 0 ? std::ldexp(mantissa, -24)
                                         : std::ldexp(1024 + mantissa, exponent - 25);
    return half >> 15 ? -value : value;
}

// All but the exceptions must be within the bound, and those must stand in order.
void check_floats(const Task& task, const std::uint8_t* before, const std::uint8_t* after, const Places& places,
                  double bound) {
    std::int64_t next = 0;
    for (std::int64_t i = 0; i < task.job.count; ++i) {
        if (next < places.count && places.data[next] == i) {
            ++next;
        } else {
            const double error = element(before, task.job.dtype, i) - element(after, task.job.dtype, i);
            require(std::fabs(error) < bound, "a value beyond its bound");
        }
    }
    require(next == places.count, "places out of order");
}

void encode(Task task, const std::uint8_t* data, std::int64_t size, std::uint8_t exponent) {
    const Grid grid(task, exponent);
    const std::int64_t bytes = task.job.count * (task.floats ? task.element_bytes : task.job.code_bytes);
    const std::int64_t capacity = task.packed ? task.stream_capacity() : task.job.count * task.job.code_bytes;
    const Memory in = filled_with(data, size, bytes), out = memory_of(bytes), stream = memory_of(capacity);
    (task.floats ? task.job.floats_in : task.job.codes_in) = in.get();
    if (!task.packed) task.job.codes_out = stream.get();
    Places places;
    const std::int64_t length =
        encode_stream(task.job, task.packed, task.packed ? stream.get() : nullptr, task.threads, places);
    require(length <= 1 + task.job.count * task.job.code_bytes, "a stream longer than its codes");

    const Memory tight = memory_of(length);
    std::memcpy(tight.get(), stream.get(), length);
    (task.floats ? task.job.floats_in : task.job.codes_in) = nullptr;
    task.job.codes_in = task.packed ? nullptr : stream.get();
    task.job.codes_out = nullptr;
    (task.floats ? task.job.floats_out : task.job.codes_out) = out.get();
    require(decode_stream(task.job, task.packed ? tight.get() : nullptr, length, 3 - task.threads), "a sound stream");
    if (task.floats) {
        check_floats(task, in.get(), out.get(), places, std::ldexp(0.75, exponent % 64 - 40));
    } else {
        require(std::memcmp(in.get(), out.get(), bytes) == 0, "codes that came back as others");
    }
    std::free(places.data);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t head = 8;
    if (size < head) return 0;
    const Task task(data);
    if (task.job.count > kMost) return 0;
    (task.encodes ? encode : decode)(task, data + head, static_cast<std::int64_t>(size - head), data[7]);
    return 0;
}
