// The Python module laconic.backends.native._core.
//
// Tensors come as addresses (Tensor.data_ptr()) with what is needed to read them; the Python side has
// checked types, sizes and devices. What is checked here again is the last line, not the first. Every
// call releases the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <vector>

#include "block.h"
#include "huffman.h"
#include "isa.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace laconic;

namespace {

using Sizes = std::vector<std::int64_t>;

template <class T>
T* pointer(std::uintptr_t address) {
    return reinterpret_cast<T*>(address);
}

bool block_encode(std::uintptr_t src_ptr, int src_dtype, const Sizes& shape, const Sizes& strides,
                  std::uintptr_t basis_ptr, int block, int chop, bool triangle, std::uintptr_t dst_ptr,
                  int dst_dtype, int threads) {
    const ImageTensor image{pointer<void>(src_ptr), static_cast<Dtype>(src_dtype), shape, strides};
    const BlockCodec codec{pointer<const double>(basis_ptr), block, chop, triangle};
    return encode_blocks(image, codec, pointer<void>(dst_ptr), static_cast<Dtype>(dst_dtype), threads);
}

bool block_decode(std::uintptr_t src_ptr, int src_dtype, std::uintptr_t basis_ptr, int block, int chop,
                  bool triangle, std::uintptr_t dst_ptr, int dst_dtype, const Sizes& shape,
                  const Sizes& strides, int threads) {
    const ImageTensor image{pointer<void>(dst_ptr), static_cast<Dtype>(dst_dtype), shape, strides};
    const BlockCodec codec{pointer<const double>(basis_ptr), block, chop, triangle};
    return decode_blocks(pointer<const void>(src_ptr), static_cast<Dtype>(src_dtype), codec, image, threads);
}

std::int64_t encode_huffman(std::uintptr_t codes_ptr, std::int64_t count, int itemsize, std::uintptr_t stream_ptr,
                            int threads) {
    return huffman_encode(pointer<const void>(codes_ptr), count, itemsize, pointer<std::uint8_t>(stream_ptr), threads);
}

bool decode_huffman(std::uintptr_t stream_ptr, std::size_t size, std::uintptr_t codes_ptr, std::int64_t count,
                    int itemsize, int threads) {
    return huffman_decode(pointer<const std::uint8_t>(stream_ptr), size, pointer<void>(codes_ptr), count, itemsize,
                          threads);
}

}  // namespace

NB_MODULE(_core, m) {
    m.def("isa", [] { return isa_name(chosen_isa()); },
          "The instruction set the kernels run on: avx512, avx2 or baseline.");

    m.def("block_encode", &block_encode, "src_ptr"_a, "src_dtype"_a, "shape"_a, "strides"_a, "basis_ptr"_a,
          "block"_a, "chop"_a, "triangle"_a, "dst_ptr"_a, "dst_dtype"_a, "threads"_a,
          nb::call_guard<nb::gil_scoped_release>(),
          "Image tensor of any strides -> contiguous coefficients. True if a finite value became infinite.");

    m.def("block_decode", &block_decode, "src_ptr"_a, "src_dtype"_a, "basis_ptr"_a, "block"_a, "chop"_a,
          "triangle"_a, "dst_ptr"_a, "dst_dtype"_a, "shape"_a, "strides"_a, "threads"_a,
          nb::call_guard<nb::gil_scoped_release>(),
          "Contiguous coefficients -> image tensor of any strides. True if a finite value became infinite.");

    m.def("huffman_encode", &encode_huffman, "codes_ptr"_a, "count"_a, "itemsize"_a, "stream_ptr"_a, "threads"_a,
          nb::call_guard<nb::gil_scoped_release>(),
          "Contiguous codes of 1, 2 or 4 bytes -> a stream of at most 1 + count * itemsize bytes. Gives their number, "
          "-1 without memory.");

    m.def("huffman_decode", &decode_huffman, "stream_ptr"_a, "size"_a, "codes_ptr"_a, "count"_a, "itemsize"_a,
          "threads"_a, nb::call_guard<nb::gil_scoped_release>(),
          "A stream -> contiguous codes. False if it is not what huffman_encode gives for so many codes.");
}
