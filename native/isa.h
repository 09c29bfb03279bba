// A kernel is compiled once per instruction set, each time in a namespace of its own; which one runs
// is decided when the library is first used.
//
// The kernels' headers (simd.h and what includes it) keep everything inside that namespace. An inline
// function shared by two instruction sets would be merged by the linker, and a plain x86-64 could
// then meet AVX-512 code.
#pragma once

#if defined(__x86_64__)
#define LACONIC_HAS_AVX 1
#endif

namespace laconic {

enum class Isa { baseline, avx2, avx512 };

// The best this CPU has, unless LACONIC_ISA in the environment names a lesser one.
Isa chosen_isa();

const char* isa_name(Isa isa);

}  // namespace laconic

#if LACONIC_HAS_AVX

#define LACONIC_DECLARE_KERNEL(...)          \
    namespace baseline { __VA_ARGS__; }      \
    namespace avx2 { __VA_ARGS__; }          \
    namespace avx512 { __VA_ARGS__; }

#define LACONIC_CHOOSE_KERNEL(function)                        \
    (chosen_isa() == Isa::avx512 ? avx512::function            \
     : chosen_isa() == Isa::avx2 ? avx2::function              \
                                 : baseline::function)

#else

#define LACONIC_DECLARE_KERNEL(...) \
    namespace baseline { __VA_ARGS__; }

#define LACONIC_CHOOSE_KERNEL(function) baseline::function

#endif
