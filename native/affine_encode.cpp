#include "affine_pieces.h"
#include "affine_range.h"
#include "noise.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

constexpr int kAhead = 16 * 1024;  // bytes: while one segment is quantised, the next one comes

template <class T>
void put_grid(const AffineJob& job, std::int64_t scope, Range<T> range) {
    const bool symmetric = job.offsets == nullptr;
    const T span = symmetric ? (-range.low > range.high ? -range.low : range.high) : range.high - range.low;
    const T scale = span / static_cast<T>(job.top_code);
    static_cast<T*>(job.scales)[scope] = scale == 0 ? T(1) : scale;
    if (!symmetric) static_cast<T*>(job.offsets)[scope] = range.low + T(0);  // a zero has no sign
}

template <class T>
struct Grid {
    T scale, offset, least, top;
};

inline Words places_from(std::int64_t place) {
    Words lanes;
    for (int lane = 0; lane < kLanes<float>; ++lane) lanes[lane] = lane;
    return lanes + static_cast<std::uint32_t>(place);
}

template <bool stochastic>
inline Ints codes_of(Floats x, const Grid<float>& grid, const Noise& noise, std::int64_t place) {
    Floats steps = (x - grid.offset) / grid.scale;
    steps = least_of(greatest_of(steps, Floats{} + grid.least), Floats{} + grid.top);
    if constexpr (!stochastic) return round_to_ints(steps);
    Ints below = __builtin_convertvector(steps, Ints);
    below += (Ints)(__builtin_convertvector(below, Floats) > steps);  // -1 where cutting off went up
    const Floats part = steps - __builtin_convertvector(below, Floats);
    const Floats drawn = __builtin_convertvector((Ints)noise.at(places_from(place)), Floats) * 0x1p-24f;
    return below - (Ints)(drawn < part);
}

template <bool stochastic, class Element>
inline void quantise(const Element* x, std::int64_t count, const Grid<float>& grid, const Noise& noise,
                     std::int64_t place, std::uint8_t* codes) {
    constexpr int lanes = kLanes<float>;
    std::int64_t at = 0;
    const auto one_vector = [&](const Element* from) {
        return narrow_to_bytes((Words)codes_of<stochastic>(load(from), grid, noise, place + at) & 0xff);
    };
    for (; at + lanes <= count; at += lanes) {
        fetch_line(reinterpret_cast<std::uintptr_t>(x + at) + kAhead);
        store_vector(codes + at, one_vector(x + at));
    }
    if (at < count) {
        Element padded[lanes] = {};
        __builtin_memcpy(padded, x + at, (count - at) * sizeof(Element));
        const Bytes last = one_vector(padded);
        __builtin_memcpy(codes + at, &last, count - at);
    }
}

template <bool stochastic>
inline void quantise(const double* x, std::int64_t count, const Grid<double>& grid, const Noise& noise,
                     std::int64_t place, std::uint8_t* codes) {
    constexpr double integers = 0x1.8p52;  // added and taken away again, it rounds half to even
    for (std::int64_t at = 0; at < count; ++at) {
        double steps = (x[at] - grid.offset) / grid.scale;
        steps = steps > grid.least ? steps : grid.least;
        steps = steps < grid.top ? steps : grid.top;
        double code = (steps + integers) - integers;
        if constexpr (stochastic) {
            code = code > steps ? code - 1 : code;
            code += noise.at(static_cast<std::uint32_t>(place + at)) * 0x1p-24 < steps - code;
        }
        codes[at] = static_cast<std::uint8_t>(static_cast<std::int32_t>(code));
    }
}

template <class Element>
class FloatReader {
    using T = Arithmetic<Element>;

public:
    explicit FloatReader(const AffineJob& job) : job_(job), x_(static_cast<const Element*>(job.floats_in)) {}

    void find_grid(std::int64_t scope, std::int64_t from, std::int64_t count) {
        put_grid<T>(job_, scope, range_of(x_ + from, count));
    }

    void read(std::int64_t scope, std::int64_t from, std::int64_t count, std::uint8_t* codes) {
        const T top = static_cast<T>(job_.top_code), scale = static_cast<const T*>(job_.scales)[scope];
        const Grid<T> grid = job_.offsets == nullptr
                                 ? Grid<T>{scale, T(0), -top, top}
                                 : Grid<T>{scale, static_cast<const T*>(job_.offsets)[scope], T(0), top};
        if (!job_.stochastic) return quantise<false>(x_ + from, count, grid, Noise(0, 0), from, codes);
        while (count > 0) {  // noise is drawn for places with the same upper half
            const std::int64_t length = smaller((std::int64_t{1} << 32) - (from & 0xffffffff), count);
            quantise<true>(x_ + from, length, grid, Noise(job_.seed, from), from, codes);
            from += length;
            codes += length;
            count -= length;
        }
    }

private:
    const AffineJob& job_;
    const Element* x_;
};

template <class Element>
void encode_floats(const AffineJob& job, std::int64_t first, std::int64_t last) {
    FloatReader<Element> reader(job);
    alignas(64) std::uint8_t scratch[kPieceCodes + 64];
    const auto find_grid = [&](std::int64_t scope, std::int64_t from, std::int64_t count) {
        reader.find_grid(scope, from, count);
    };
    const auto enter = [&](std::int64_t from, std::int64_t to) {
        if (job.finds_grid) visit_scopes(job, from, to, find_grid);
    };
    const auto encode_piece = [&](std::int64_t begin, std::int64_t length) {
        std::uint8_t* codes = job.width > 0 ? scratch : job.codes_out + begin;
        visit_scopes(job, begin, begin + length, [&](std::int64_t scope, std::int64_t from, std::int64_t count) {
            reader.read(scope, from, count, codes + (from - begin));
        });
        if (job.width == 0) return;
        with_width(job.width, [&](auto width) {
            pack_piece<width.value>(codes, length, job.codes_out + packed_place(job, begin));
        });
    };
    visit_pieces(job, first, last, enter, encode_piece);
}

// Whether each code has the bits above the width all alike: zeros, or copies of its sign.
bool all_fit(const std::uint8_t* codes, std::int64_t count, const AffineJob& job) {
    const int kept = job.is_signed ? job.width - 1 : job.width;
    std::uint8_t any = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::uint8_t code = codes[i];
        any |= job.is_signed ? static_cast<std::uint8_t>(code ^ -(code >> 7)) : code;
    }
    return any >> kept == 0;
}

bool encode_codes_alone(const AffineJob& job, std::int64_t first, std::int64_t last) {
    bool fit = true;
    const auto encode_piece = [&](std::int64_t begin, std::int64_t length) {
        fit &= all_fit(job.codes_in + begin, length, job);
        with_width(job.width, [&](auto width) {
            pack_piece<width.value>(job.codes_in + begin, length, job.codes_out + packed_place(job, begin));
        });
    };
    visit_pieces(job, first, last, [](std::int64_t, std::int64_t) {}, encode_piece);
    return fit;
}

template <class Element>
Reach reach_in(const void* values, std::int64_t count) {
    const auto range = range_of(static_cast<const Element*>(values), count);
    return {range.low, range.high};
}

}  // namespace

Reach reach_of(const void* values, Dtype dtype, std::int64_t count) {
    switch (dtype) {
        case Dtype::float64: return reach_in<double>(values, count);
        case Dtype::float16: return reach_in<Float16>(values, count);
        case Dtype::bfloat16: return reach_in<BFloat16>(values, count);
        default: return reach_in<float>(values, count);
    }
}

void set_grid(const AffineJob& job, std::int64_t scope, Reach reach) {
    if (job.dtype == Dtype::float64) return put_grid<double>(job, scope, {reach.low, reach.high});
    put_grid<float>(job, scope, {static_cast<float>(reach.low), static_cast<float>(reach.high)});
}

bool encode_affine(const AffineJob& job, std::int64_t begin, std::int64_t end) {
    if (job.floats_in == nullptr) return encode_codes_alone(job, begin, end);
    switch (job.dtype) {
        case Dtype::float64: encode_floats<double>(job, begin, end); break;
        case Dtype::float16: encode_floats<Float16>(job, begin, end); break;
        case Dtype::bfloat16: encode_floats<BFloat16>(job, begin, end); break;
        default: encode_floats<float>(job, begin, end);
    }
    return true;
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
