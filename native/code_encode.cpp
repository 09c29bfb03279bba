#include "planes.h"
#include "quantise.h"
#include "residuals.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

struct NoFloats {};  // codes come in

template <class Element, class T>
class CodeEncoder {
    using U = Unsigned<T>;
    static constexpr bool kQuantises = !__is_same(Element, NoFloats);

public:
    CodeEncoder(const CodeJob& job, const Scratch& scratch, std::uint32_t* sizes, std::uint8_t* out, Places& exceptions)
        : job_(job),
          lines_(job),
          line_(static_cast<U*>(scratch.lines[0])),
          above_(static_cast<U*>(scratch.lines[1])),
          plane_(static_cast<U*>(scratch.plane)),
          chunk_(static_cast<U*>(scratch.chunk)),
          spare_(static_cast<U*>(scratch.spare)),
          sizes_(sizes),
          start_(out),
          out_(out),
          exceptions_(exceptions) {}

    std::int64_t run(std::int64_t begin, std::int64_t end) {
        begin_ = begin;
        end_ = end;
        for (std::int64_t index = first_line();; ++index) {
            const Line line = lines_.at(index);
            if (line.start >= end) break;
            read(line);
            emit(line);
            U* const spare = above_;
            above_ = line_;
            line_ = spare;
        }
        if (filled_ > 0) flush();
        return out_ - start_;
    }

private:
    // Earlier than the range begins, where that is foretold by what lies before.
    std::int64_t first_line() const {
        const std::int64_t first = lines_.holding(begin_);
        const std::int64_t before = job_.dims == 3 ? job_.height + 1 : job_.dims == 2 ? 1 : 0;
        return larger(lines_.at(first).slab, first - before);
    }

    void read(const Line& line) {
        T* codes = reinterpret_cast<T*>(line_);
        if constexpr (kQuantises) {
            using Number = Arithmetic<Element>;
            const std::int64_t scope = line.start / job_.scope;
            const auto note = [&](std::int64_t at) {
                const std::int64_t place = line.start + at;
                if (begin_ <= place && place < end_) add_place(exceptions_, place);
            };
            quantise(static_cast<const Element*>(job_.floats_in) + line.start, line.length,
                     static_cast<const Number*>(job_.steps)[scope], static_cast<const Number*>(job_.bounds)[scope],
                     job_.top_code, codes, note);
        } else {
            __builtin_memcpy(codes, static_cast<const T*>(job_.codes_in) + line.start, line.length * sizeof(T));
        }
    }

    void emit(const Line& line) {
        if (job_.dims == 3 && !line.front) __builtin_memset(plane_ + line.in_plane, 0, line.length * sizeof(U));
        const std::int64_t stop = smaller(line.start + line.length, end_);
        std::int64_t at = job_.dims == 3 ? line.start : larger(line.start, begin_);
        while (at < stop) {
            const std::int64_t limit = at < begin_ ? smaller(begin_, stop) : stop;
            std::int64_t count = limit - at;
            U* to;
            if (at < begin_) {  // its differences matter, for the plane, but not what is left of them
                count = smaller<std::int64_t>(count, kChunkCodes);
                to = spare_;
            } else if (sizes_ == nullptr) {
                to = static_cast<U*>(job_.codes_out) + at;
            } else {
                count = smaller<std::int64_t>(count, kChunkCodes - filled_);
                to = chunk_ + filled_;
                filled_ += count;
            }
            predict(line, at - line.start, count, to);
            at += count;
            if (filled_ == kChunkCodes) flush();
        }
    }

    void predict(const Line& line, std::int64_t from, std::int64_t count, U* out) {
        const Prediction asked{job_.dims > 0, line.north, job_.dims == 3, sizes_ != nullptr && job_.zigzag};
        with_prediction(asked, [&](auto west, auto north, auto planar, auto zigzag) {
            subtract_neighbours<west.value, north.value, planar.value, zigzag.value>(
                line_ + from, above_ + from, plane_ + line.in_plane + from, count, out);
        });
    }

    void flush() {
        __builtin_memset(chunk_ + filled_, 0, kBlockCodes * sizeof(U));
        const std::int64_t size = pack_chunk(chunk_, static_cast<int>(filled_), out_);
        *sizes_++ = static_cast<std::uint32_t>(size);
        out_ += size;
        filled_ = 0;
    }

    const CodeJob& job_;
    const Lines lines_;
    U *line_, *above_, *plane_, *chunk_, *spare_;
    std::uint32_t* sizes_;
    std::uint8_t *start_, *out_;
    Places& exceptions_;
    std::int64_t begin_ = 0, end_ = 0, filled_ = 0;
};

template <class Element>
std::int64_t encode_from(const CodeJob& job, std::int64_t begin, std::int64_t end, const Scratch& scratch,
                         std::uint32_t* sizes, std::uint8_t* out, Places& exceptions) {
    switch (job.code_bytes) {
        case 1: return CodeEncoder<Element, std::int8_t>(job, scratch, sizes, out, exceptions).run(begin, end);
        case 2: return CodeEncoder<Element, std::int16_t>(job, scratch, sizes, out, exceptions).run(begin, end);
        default: return CodeEncoder<Element, std::int32_t>(job, scratch, sizes, out, exceptions).run(begin, end);
    }
}

}  // namespace

std::int64_t encode_codes(const CodeJob& job, std::int64_t begin, std::int64_t end, const Scratch& scratch,
                          std::uint32_t* sizes, std::uint8_t* out, Places& exceptions) {
    if (job.floats_in == nullptr) return encode_from<NoFloats>(job, begin, end, scratch, sizes, out, exceptions);
    switch (job.dtype) {
        case Dtype::float64: return encode_from<double>(job, begin, end, scratch, sizes, out, exceptions);
        case Dtype::float16: return encode_from<Float16>(job, begin, end, scratch, sizes, out, exceptions);
        case Dtype::bfloat16: return encode_from<BFloat16>(job, begin, end, scratch, sizes, out, exceptions);
        default: return encode_from<float>(job, begin, end, scratch, sizes, out, exceptions);
    }
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
