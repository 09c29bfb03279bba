// The Python module laconic.backends.native._core.
//
// Tensors come as addresses (Tensor.data_ptr()) with what is needed to read them; the Python side has
// checked types, sizes and devices. What is checked here again is the last line, not the first. Every
// call releases the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <tuple>
#include <utility>
#include <vector>

#include "affine.h"
#include "block.h"
#include "checksum.h"
#include "codes.h"
#include "deviation.h"
#include "grid.h"
#include "huffman.h"
#include "isa.h"
#include "module_rows.h"
#include "rans.h"
#include "survey.h"

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

// The geometry of codes: elements in all, the last dimensions from the slowest to the fastest, the number of
// predicted ones, the bytes of a code, and whether packed ones are zigzagged.
using CodeShape = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, int, int, bool>;

// The floats: where, their type, and the steps and bounds of scopes of so many elements.
using Floats = std::tuple<std::uintptr_t, int, std::uintptr_t, std::uintptr_t, std::int64_t, std::int32_t>;

CodeJob job_of(const CodeShape& shape) {
    CodeJob job;
    std::tie(job.count, job.depth, job.height, job.width, job.dims, job.code_bytes, job.zigzag) = shape;
    return job;
}

std::uintptr_t set_floats(CodeJob& job, const Floats& floats) {
    const auto& [address, dtype, steps, bounds, scope, top] = floats;
    job.dtype = static_cast<Dtype>(dtype);
    job.steps = pointer<const void>(steps);
    job.bounds = pointer<const void>(bounds);
    job.scope = scope;
    job.top_code = top;
    return address;
}

// (length of the stream, places of exceptions as int64 in bytes)
nb::tuple encode_codes(CodeJob job, bool packed, std::uintptr_t out, int threads) {
    Places places;
    std::int64_t length = 0;
    {
        nb::gil_scoped_release release;
        if (!packed) job.codes_out = pointer<void>(out);
        length = encode_stream(job, packed, packed ? pointer<std::uint8_t>(out) : nullptr, threads, places);
    }
    const nb::bytes found(places.data == nullptr ? "" : reinterpret_cast<const char*>(places.data),
                          places.count * sizeof(std::int64_t));
    std::free(places.data);
    if (places.failed) throw std::bad_alloc();
    return nb::make_tuple(length, found);
}

nb::tuple code_encode(std::uintptr_t codes, const CodeShape& shape, bool packed, std::uintptr_t out, int threads) {
    CodeJob job = job_of(shape);
    job.codes_in = pointer<const void>(codes);
    return encode_codes(job, packed, out, threads);
}

nb::tuple float_encode(const Floats& floats, const CodeShape& shape, bool packed, std::uintptr_t out, int threads) {
    CodeJob job = job_of(shape);
    job.floats_in = pointer<const void>(set_floats(job, floats));
    return encode_codes(job, packed, out, threads);
}

// `stream` of `size` bytes; codes as they are where `size` is negative.
bool decode_codes(CodeJob job, std::uintptr_t stream, std::int64_t size, int threads) {
    nb::gil_scoped_release release;
    if (size < 0) job.codes_in = pointer<const void>(stream);
    return decode_stream(job, size < 0 ? nullptr : pointer<const std::uint8_t>(stream), size, threads);
}

bool code_decode(std::uintptr_t stream, std::int64_t size, const CodeShape& shape, std::uintptr_t codes, int threads) {
    CodeJob job = job_of(shape);
    job.codes_out = pointer<void>(codes);
    return decode_codes(job, stream, size, threads);
}

bool float_decode(std::uintptr_t stream, std::int64_t size, const CodeShape& shape, const Floats& floats, int threads) {
    CodeJob job = job_of(shape);
    job.floats_out = pointer<void>(set_floats(job, floats));
    return decode_codes(job, stream, size, threads);
}

int grid(std::uintptr_t values, int dtype, std::int64_t scopes, std::int64_t scope, int kind, double value,
         std::uintptr_t steps, std::uintptr_t bounds, int threads) {
    return bound_grid(pointer<const void>(values), static_cast<Dtype>(dtype), scopes, scope,
                      static_cast<BoundKind>(kind), value, pointer<void>(steps), pointer<void>(bounds), threads);
}

// Elements in all, those packed together, bits of a packed code (0: a byte each), and whether codes have a sign.
using FixedShape = std::tuple<std::int64_t, std::int64_t, int, bool>;

// The type of the floats, the scales, the offsets or 0, the row, the group, and the largest code.
using AffineGrid = std::tuple<int, std::uintptr_t, std::uintptr_t, std::int64_t, std::int64_t, int>;

AffineJob job_of(const FixedShape& shape) {
    AffineJob job;
    std::tie(job.count, job.line, job.width, job.is_signed) = shape;
    return job;
}

AffineJob job_of(const FixedShape& shape, const AffineGrid& grid) {
    AffineJob job = job_of(shape);
    const auto& [dtype, scales, offsets, row, group, top] = grid;
    job.dtype = static_cast<Dtype>(dtype);
    job.scales = pointer<void>(scales);
    job.offsets = pointer<void>(offsets);
    job.row = row;
    job.group = group;
    job.top_code = top;
    return job;
}

bool fixed_encode(std::uintptr_t codes, const FixedShape& shape, std::uintptr_t out, int threads) {
    AffineJob job = job_of(shape);
    job.codes_in = pointer<const std::uint8_t>(codes);
    job.codes_out = pointer<std::uint8_t>(out);
    return affine_encode(job, threads);
}

void fixed_decode(std::uintptr_t data, const FixedShape& shape, std::uintptr_t codes, int threads) {
    AffineJob job = job_of(shape);
    job.codes_in = pointer<const std::uint8_t>(data);
    job.codes_out = pointer<std::uint8_t>(codes);
    affine_decode(job, threads);
}

// A negative seed: to the nearest code.
void floats_encode_affine(std::uintptr_t floats, const FixedShape& shape, const AffineGrid& grid, std::int64_t seed,
                          std::uintptr_t out, int threads) {
    AffineJob job = job_of(shape, grid);
    job.floats_in = pointer<const void>(floats);
    job.codes_out = pointer<std::uint8_t>(out);
    job.stochastic = seed >= 0;
    job.seed = static_cast<std::uint64_t>(seed);
    affine_encode(job, threads);
}

void floats_decode_affine(std::uintptr_t data, const FixedShape& shape, const AffineGrid& grid, std::uintptr_t floats,
                          int threads) {
    AffineJob job = job_of(shape, grid);
    job.codes_in = pointer<const std::uint8_t>(data);
    job.floats_out = pointer<void>(floats);
    affine_decode(job, threads);
}

std::int64_t encode_huffman(std::uintptr_t codes_ptr, std::int64_t count, int itemsize, std::uintptr_t stream_ptr,
                            std::uintptr_t book_ptr, std::size_t book_size, int threads) {
    return huffman_encode(pointer<const void>(codes_ptr), count, itemsize, pointer<std::uint8_t>(stream_ptr), threads,
                          pointer<const std::uint8_t>(book_ptr), book_size);
}

bool decode_huffman(std::uintptr_t stream_ptr, std::size_t size, std::uintptr_t book_ptr, std::size_t book_size,
                    std::uintptr_t codes_ptr, std::int64_t count, int itemsize, int threads) {
    return huffman_decode(pointer<const std::uint8_t>(stream_ptr), size, pointer<void>(codes_ptr), count, itemsize,
                          threads, pointer<const std::uint8_t>(book_ptr), book_size);
}

std::int64_t share_huffman(const std::vector<std::pair<std::uintptr_t, std::int64_t>>& batch, int itemsize,
                           std::uintptr_t book_ptr, int threads) {
    std::vector<HuffmanCodes> codes;
    for (const auto& [address, count] : batch) codes.push_back({pointer<const void>(address), count});
    return huffman_share(codes.data(), static_cast<std::int64_t>(codes.size()), itemsize,
                         pointer<std::uint8_t>(book_ptr), threads);
}

std::vector<std::int64_t> survey_codes(std::uintptr_t codes_ptr, std::int64_t count, int itemsize, bool zigzag,
                                       std::int64_t row, std::int64_t most_blocks, std::int64_t most_rows) {
    nb::gil_scoped_release nobody_waits;
    std::vector<std::int64_t> found(kSurveySize);
    if (!survey({pointer<const void>(codes_ptr), count, itemsize, zigzag, row, most_blocks, most_rows}, found.data())) {
        throw std::bad_alloc();
    }
    return found;
}

// Tensors of codes: (address, count).
std::vector<RansCodes> rans_batch(const std::vector<std::pair<std::uintptr_t, std::int64_t>>& batch) {
    std::vector<RansCodes> codes;
    codes.reserve(batch.size());
    for (const auto& [address, count] : batch) codes.push_back({pointer<const void>(address), count});
    return codes;
}

std::int64_t share_rans(const std::vector<std::pair<std::uintptr_t, std::int64_t>>& batch, int itemsize,
                        std::uintptr_t book_ptr, int threads) {
    const std::vector<RansCodes> codes = rans_batch(batch);
    return rans_share(codes.data(), static_cast<std::int64_t>(codes.size()), itemsize, pointer<std::uint8_t>(book_ptr),
                      threads);
}

std::int64_t encode_rans(const std::vector<std::pair<std::uintptr_t, std::int64_t>>& batch, int itemsize,
                         std::uintptr_t streams_ptr, std::uintptr_t lengths_ptr, std::uintptr_t book_ptr,
                         std::size_t book_size, int threads) {
    const std::vector<RansCodes> codes = rans_batch(batch);
    return rans_encode_many(codes.data(), static_cast<std::int64_t>(codes.size()), itemsize,
                            pointer<std::uint8_t>(streams_ptr), pointer<std::int64_t>(lengths_ptr), threads,
                            pointer<const std::uint8_t>(book_ptr), book_size);
}

// Streams and their codes: (address, bytes, address, count).
bool decode_rans(const std::vector<std::tuple<std::uintptr_t, std::size_t, std::uintptr_t, std::int64_t>>& batch,
                 int itemsize, std::uintptr_t book_ptr, std::size_t book_size, int threads) {
    std::vector<RansStream> streams;
    streams.reserve(batch.size());
    for (const auto& [stream, size, codes, count] : batch) {
        streams.push_back({pointer<const std::uint8_t>(stream), size, pointer<void>(codes), count});
    }
    return rans_decode_many(streams.data(), static_cast<std::int64_t>(streams.size()), itemsize, threads,
                            pointer<const std::uint8_t>(book_ptr), book_size);
}

// Of the first `size` bytes of a buffer.
std::uint32_t checksum_of(nb::handle data, std::int64_t size, std::uint32_t before) {
    Py_buffer view;
    if (PyObject_GetBuffer(data.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    std::uint32_t found = before;
    if (size >= 64 && size <= view.len && size % 16 == 0) {
        nb::gil_scoped_release release;
        found = checksum(static_cast<const std::uint8_t*>(view.buf), size, before);
    }
    PyBuffer_Release(&view);
    return found;
}

void deviation(std::uintptr_t x, std::uintptr_t y, int dtype, std::int64_t samples, std::int64_t sample,
               std::uintptr_t found) {
    const std::int64_t bytes = dtype == static_cast<int>(Dtype::float64)   ? 8
                               : dtype == static_cast<int>(Dtype::float32) ? 4
                               : dtype == static_cast<int>(Dtype::uint8)   ? 1
                                                                           : 2;
    for (std::int64_t i = 0; i < samples; ++i) {
        const std::uintptr_t at = i * sample * bytes;
        LACONIC_CHOOSE_KERNEL(deviation_of)
        (pointer<const void>(x + at), pointer<const void>(y + at), static_cast<Dtype>(dtype), sample,
         pointer<double>(found) + 4 * i);
    }
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

    m.def("code_encode", &code_encode, "codes_ptr"_a, "shape"_a, "packed"_a, "out_ptr"_a, "threads"_a,
          "Codes -> residuals, packed or as they are: (length, nothing).");
    m.def("float_encode", &float_encode, "floats"_a, "shape"_a, "packed"_a, "out_ptr"_a, "threads"_a,
          "Floats -> codes or residuals, packed or as they are: (length, places of exceptions).");
    m.def("code_decode", &code_decode, "stream_ptr"_a, "size"_a, "shape"_a, "codes_ptr"_a, "threads"_a,
          "The way back of code_encode. A negative size: not packed. False for corrupt streams.");
    m.def("float_decode", &float_decode, "stream_ptr"_a, "size"_a, "shape"_a, "floats"_a, "threads"_a,
          "The way back of float_encode, but for exceptions.");
    m.def("bound_grid", &grid, "values_ptr"_a, "dtype"_a, "scopes"_a, "scope"_a, "kind"_a, "value"_a, "steps_ptr"_a,
          "bounds_ptr"_a, "threads"_a, nb::call_guard<nb::gil_scoped_release>(),
          "Fills the step and the bound of each scope; gives the width of codes.");

    m.def("fixed_encode", &fixed_encode, "codes_ptr"_a, "shape"_a, "out_ptr"_a, "threads"_a,
          nb::call_guard<nb::gil_scoped_release>(), "Codes -> planes of one width. False where a code does not fit.");
    m.def("fixed_decode", &fixed_decode, "data_ptr"_a, "shape"_a, "codes_ptr"_a, "threads"_a,
          nb::call_guard<nb::gil_scoped_release>(), "The way back of fixed_encode.");
    m.def("affine_encode", &floats_encode_affine, "floats_ptr"_a, "shape"_a, "grid"_a, "seed"_a, "out_ptr"_a,
          "threads"_a, nb::call_guard<nb::gil_scoped_release>(),
          "Fills the scales, the offsets, and the codes, packed or a byte each.");
    m.def("affine_decode", &floats_decode_affine, "data_ptr"_a, "shape"_a, "grid"_a, "floats_ptr"_a, "threads"_a,
          nb::call_guard<nb::gil_scoped_release>(), "The way back of affine_encode.");

    m.def("has_checksum", &has_checksum, "Whether checksum() works here.");
    m.def("checksum", &checksum_of, "data"_a, "size"_a, "before"_a,
          "CRC-32 of the first bytes of a buffer: a multiple of 16, and at least 64.");

    m.def("deviation", &deviation, "x_ptr"_a, "y_ptr"_a, "dtype"_a, "samples"_a, "sample"_a, "found_ptr"_a,
          nb::call_guard<nb::gil_scoped_release>(),
          "Of each sample: least, greatest, largest of |x - y|, sum of (x - y)^2.");

    m.def("huffman_encode", &encode_huffman, "codes_ptr"_a, "count"_a, "itemsize"_a, "stream_ptr"_a, "book_ptr"_a,
          "book_size"_a, "threads"_a, nb::call_guard<nb::gil_scoped_release>(),
          "Contiguous codes of 1, 2 or 4 bytes -> a stream of at most 1 + count * itemsize bytes. Gives their number, "
          "-1 without memory, -2 where the book is none.");

    m.def("huffman_decode", &decode_huffman, "stream_ptr"_a, "size"_a, "book_ptr"_a, "book_size"_a, "codes_ptr"_a,
          "count"_a, "itemsize"_a, "threads"_a, nb::call_guard<nb::gil_scoped_release>(),
          "A stream -> contiguous codes. False if it is not what huffman_encode gives for so many codes.");

    m.def("huffman_share", &share_huffman, "batch"_a, "itemsize"_a, "book_ptr"_a, "threads"_a,
          nb::call_guard<nb::gil_scoped_release>(),
          "(pointer, count) of each tensor of codes -> books for all, of at most 512 bytes. Gives the number of these, "
          "0 where books would not pay, -1 without memory.");

    m.def("rans_encode", &encode_rans, "batch"_a, "itemsize"_a, "streams_ptr"_a, "lengths_ptr"_a, "book_ptr"_a,
          "book_size"_a, "threads"_a, nb::call_guard<nb::gil_scoped_release>(),
          "(pointer, count) of each tensor of codes -> streams one after another, each of at most 1 + count * itemsize "
          "bytes, and their lengths. Gives the number of all bytes, -1 without memory, -2 where the book is none.");

    m.def("rans_decode", &decode_rans, "batch"_a, "itemsize"_a, "book_ptr"_a, "book_size"_a, "threads"_a,
          nb::call_guard<nb::gil_scoped_release>(),
          "(pointer, bytes, pointer, count) of streams and codes. False if one is not what rans_encode gives.");

    m.def("rans_share", &share_rans, "batch"_a, "itemsize"_a, "book_ptr"_a, "threads"_a,
          nb::call_guard<nb::gil_scoped_release>(),
          "(pointer, count) of each tensor of codes -> a book for all, of at most 6398 bytes. Gives their number, 0 "
          "where a book would not pay, -1 without memory.");

    m.def("survey", &survey_codes, "codes_ptr"_a, "count"_a, "itemsize"_a, "zigzag"_a, "row"_a, "most_blocks"_a,
          "most_rows"_a, "Contiguous codes of 1, 2 or 4 bytes -> the numbers of ops/survey.py, in this order.");

    bind_rows(m);
}
