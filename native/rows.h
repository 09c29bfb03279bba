// Rows of elements in memory <-> rows of numbers to compute with.
//
// A row may have any length and begin anywhere: its last vector overlaps the one before.
#pragma once

#include "convert.h"

namespace laconic::LACONIC_ISA_NAMESPACE {

// `to` has room for a vector, however short the row.
template <class Element, class T>
inline void read_row(const Element* from, std::int64_t count, T* to) {
    constexpr int lanes = kLanes<T>;
    if (count < lanes) {
        Element padded[lanes] = {};
        __builtin_memcpy(padded, from, count * sizeof(Element));
        return store_vector(to, load(padded));
    }
    std::int64_t done = 0;
    for (; done + lanes <= count; done += lanes) store_vector(to + done, load(from + done));
    if (done < count) store_vector(to + count - lanes, load(from + count - lanes));
}

template <class Element, class T>
inline void write_short_row(const T* from, std::int64_t count, Element* to, Overflow& overflow) {
    T padded[kLanes<T>] = {};
    __builtin_memcpy(padded, from, count * sizeof(T));
    overflow.note(load(padded), to);
    const auto packed = pack(load(padded), to);
    __builtin_memcpy(to, &packed, count * sizeof(Element));
}

// How many elements come before the first that vectors of `lanes` can be streamed to.
template <class Element>
inline std::int64_t elements_to_alignment(const Element* to, int lanes) {
    const std::uintptr_t bytes = lanes * sizeof(Element);
    return static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(to) % bytes / sizeof(Element));
}

// `streaming` writes past the caches what is aligned.
template <class Element, class T>
inline void write_row(const T* from, std::int64_t count, Element* to, bool streaming, Overflow& overflow) {
    constexpr int lanes = kLanes<T>;
    if (count < lanes) return write_short_row(from, count, to, overflow);

    Overflow noted = overflow;  // a copy, which stays in a register
    const auto write = [&](std::int64_t at, bool past_caches) {
        const Vec<T> values = load(from + at);
        noted.note(values, to);
        if (past_caches) {
            stream_vector(to + at, pack(values, to));
        } else {
            store_vector(to + at, pack(values, to));
        }
    };
    std::int64_t done = streaming ? elements_to_alignment(to, lanes) : 0;
    if (done > 0) write(0, false);
    for (; done + lanes <= count; done += lanes) write(done, streaming);
    if (done < count) write(count - lanes, false);
    overflow = noted;
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
