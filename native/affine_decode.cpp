#include "affine_pieces.h"
#include "convert.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

inline Floats numbers(const std::uint8_t* codes) {
    return __builtin_convertvector((Ints)widen(load_vector<Bytes>(codes)), Floats);
}
inline Floats numbers(const std::int8_t* codes) { return __builtin_convertvector(load_widened(codes), Floats); }

// A multiplication and then an addition, each rounded; reads up to a vector more.
template <class Code, class Element>
inline void dequantise(const Code* codes, std::int64_t count, float scale, const float* offset, bool streaming,
                       Element* x) {
    constexpr int lanes = kLanes<float>;
    const auto one_vector = [&](std::int64_t at, auto has_offset) {
        Floats values = numbers(codes + at) * scale;
        if constexpr (has_offset.value) values += *offset;
        return pack(values, x);
    };
    const auto all = [&](auto has_offset) {
        const bool aligned = reinterpret_cast<std::uintptr_t>(x) % (lanes * sizeof(Element)) == 0;
        std::int64_t at = 0;
        if (streaming && aligned) {
            for (; at + lanes <= count; at += lanes) stream_vector(x + at, one_vector(at, has_offset));
        }
        for (; at + lanes <= count; at += lanes) store_vector(x + at, one_vector(at, has_offset));
        if (at < count) {
            const auto last = one_vector(at, has_offset);
            __builtin_memcpy(x + at, &last, (count - at) * sizeof(Element));
        }
    };
    offset == nullptr ? all(Width<0>{}) : all(Width<1>{});
}

template <class Code>
inline void dequantise(const Code* codes, std::int64_t count, double scale, const double* offset, bool, double* x) {
    for (std::int64_t at = 0; at < count; ++at) {
        const double value = static_cast<double>(codes[at]) * scale;
        x[at] = offset == nullptr ? value : value + *offset;
    }
}

template <class Element, class Code>
void decode_floats(const AffineJob& job, std::int64_t first, std::int64_t last) {
    using T = Arithmetic<Element>;
    alignas(64) std::uint8_t unpacked[kPieceCodes + 64];
    const auto decode_piece = [&](std::int64_t begin, std::int64_t length) {
        if (job.width > 0) {
            with_width(job.width, [&](auto width) {
                unpack_piece<width.value>(job.codes_in + packed_place(job, begin), length, job.is_signed, unpacked);
            });
        } else {
            __builtin_memcpy(unpacked, job.codes_in + begin, length);
        }
        visit_scopes(job, begin, begin + length, [&](std::int64_t scope, std::int64_t from, std::int64_t count) {
            const T* offset = job.offsets == nullptr ? nullptr : static_cast<const T*>(job.offsets) + scope;
            dequantise(reinterpret_cast<const Code*>(unpacked) + (from - begin), count,
                       static_cast<const T*>(job.scales)[scope], offset, job.streaming,
                       static_cast<Element*>(job.floats_out) + from);
        });
    };
    visit_pieces(job, first, last, [](std::int64_t, std::int64_t) {}, decode_piece);
    if (job.streaming) finish_streaming();
}

void decode_codes_alone(const AffineJob& job, std::int64_t first, std::int64_t last) {
    alignas(64) std::uint8_t unpacked[kPieceCodes + 64];
    const auto decode_piece = [&](std::int64_t begin, std::int64_t length) {
        with_width(job.width, [&](auto width) {
            unpack_piece<width.value>(job.codes_in + packed_place(job, begin), length, job.is_signed, unpacked);
        });
        __builtin_memcpy(job.codes_out + begin, unpacked, length);
    };
    visit_pieces(job, first, last, [](std::int64_t, std::int64_t) {}, decode_piece);
}

template <class Element>
void decode_to(const AffineJob& job, std::int64_t first, std::int64_t last) {
    job.is_signed ? decode_floats<Element, std::int8_t>(job, first, last)
                  : decode_floats<Element, std::uint8_t>(job, first, last);
}

}  // namespace

void decode_affine(const AffineJob& job, std::int64_t begin, std::int64_t end) {
    if (job.floats_out == nullptr) return decode_codes_alone(job, begin, end);
    switch (job.dtype) {
        case Dtype::float64: return decode_to<double>(job, begin, end);
        case Dtype::float16: return decode_to<Float16>(job, begin, end);
        case Dtype::bfloat16: return decode_to<BFloat16>(job, begin, end);
        default: return decode_to<float>(job, begin, end);
    }
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
