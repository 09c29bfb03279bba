#include "planes.h"
#include "quantise.h"
#include "residuals.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

struct NoFloats {};  // codes go out

template <class Element, class T>
class CodeDecoder {
    using U = Unsigned<T>;
    static constexpr bool kDequantises = !__is_same(Element, NoFloats);

public:
    CodeDecoder(const CodeJob& job, const Scratch& scratch)
        : job_(job),
          lines_(job),
          line_(static_cast<U*>(scratch.lines[0])),
          above_(static_cast<U*>(scratch.lines[1])),
          plane_(static_cast<U*>(scratch.plane)),
          chunk_(static_cast<U*>(scratch.chunk)) {}

    bool run(std::int64_t begin, std::int64_t end) {
        for (std::int64_t index = lines_.holding(begin);; ++index) {
            const Line line = lines_.at(index);
            if (line.start >= end) return true;
            if (!sum(line)) return false;
            write(line);
            U* const spare = above_;
            above_ = line_;
            line_ = spare;
        }
    }

private:
    bool sum(const Line& line) {
        if (job_.dims == 3 && !line.front) __builtin_memset(plane_ + line.in_plane, 0, line.length * sizeof(U));
        const Prediction asked{job_.dims > 0, line.north, job_.dims == 3, job_.packed_in != nullptr && job_.zigzag};
        U carry = 0;
        for (std::int64_t at = 0; at < line.length;) {
            std::int64_t count = line.length - at;
            const U* residuals = residuals_at(line.start + at, count);
            if (residuals == nullptr) return false;
            with_prediction(asked, [&](auto west, auto north, auto planar, auto zigzag) {
                add_neighbours<west.value, north.value, planar.value, zigzag.value>(
                    residuals, above_ + at, plane_ + line.in_plane + at, count, line_ + at, carry);
            });
            at += count;
        }
        return true;
    }

    // Residuals from this place on, `count` or as many as its chunk still has; null where the chunk is corrupt.
    const U* residuals_at(std::int64_t place, std::int64_t& count) {
        if (job_.packed_in == nullptr) return static_cast<const U*>(job_.codes_in) + place;
        const std::int64_t chunk = place / kChunkCodes, from = place % kChunkCodes;
        const std::int64_t held = smaller<std::int64_t>(kChunkCodes, job_.count - chunk * kChunkCodes);
        if (chunk != unpacked_) {
            const std::int64_t offset = job_.offsets[chunk], size = job_.offsets[chunk + 1] - offset;
            if (!unpack_chunk(job_.packed_in + offset, size, static_cast<int>(held), chunk_)) return nullptr;
            unpacked_ = chunk;
        }
        count = smaller(count, held - from);
        return chunk_ + from;
    }

    void write(const Line& line) {
        const T* codes = reinterpret_cast<const T*>(line_);
        if constexpr (kDequantises) {
            const auto* steps = static_cast<const Arithmetic<Element>*>(job_.steps);
            dequantise(codes, line.length, steps[line.start / job_.scope],
                       static_cast<Element*>(job_.floats_out) + line.start);
        } else {
            __builtin_memcpy(static_cast<T*>(job_.codes_out) + line.start, codes, line.length * sizeof(T));
        }
    }

    const CodeJob& job_;
    const Lines lines_;
    U *line_, *above_, *plane_, *chunk_;
    std::int64_t unpacked_ = -1;
};

template <class Element>
bool decode_to(const CodeJob& job, std::int64_t begin, std::int64_t end, const Scratch& scratch) {
    switch (job.code_bytes) {
        case 1: return CodeDecoder<Element, std::int8_t>(job, scratch).run(begin, end);
        case 2: return CodeDecoder<Element, std::int16_t>(job, scratch).run(begin, end);
        default: return CodeDecoder<Element, std::int32_t>(job, scratch).run(begin, end);
    }
}

}  // namespace

bool decode_codes(const CodeJob& job, std::int64_t begin, std::int64_t end, const Scratch& scratch) {
    if (job.floats_out == nullptr) return decode_to<NoFloats>(job, begin, end, scratch);
    switch (job.dtype) {
        case Dtype::float64: return decode_to<double>(job, begin, end, scratch);
        case Dtype::float16: return decode_to<Float16>(job, begin, end, scratch);
        case Dtype::bfloat16: return decode_to<BFloat16>(job, begin, end, scratch);
        default: return decode_to<float>(job, begin, end, scratch);
    }
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
