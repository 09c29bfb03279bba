// The block transform codec: Y = A X A^T on every N x N block of an image, of which `chop` rows and
// columns are kept, and X = S Y S^T back.
//
//   image H x W                      coefficients, chop = 2 of N = 4
//   +------+------+------+           +---+---+---+
//   | N x N|      |      |           |   |   |   |   row i of a block row: for each block its
//   |      |      |      |   <-->    +---+---+---+   coefficients j = 0 .. chop - 1
//   +------+------+------+           |   |   |   |   (triangle: 0 .. chop - 1 - i)
//   |      |      |      |           +---+---+---+
//   +------+------+------+
//
// An image whose size N does not divide goes on with its last row and column; decoding crops.
#pragma once

#include <cstdint>
#include <vector>

#include "elements.h"

namespace laconic {

constexpr int kMaxDims = 64;

struct BlockCodec {
    const double* matrix;  // N x N: analysis to encode, synthesis to decode
    int block;             // N: 4, 8, 16 or 32
    int chop;              // 1 .. N
    bool triangle;         // keep i + j < chop only
};

// A tensor of images, in its last two dimensions; strides count elements. The coefficients are
// contiguous, and of the same type (float32 for images of uint8).
struct ImageTensor {
    void* data;
    Dtype dtype;
    const std::vector<std::int64_t>& shape;
    const std::vector<std::int64_t>& strides;
};

// Both tell whether a finite value became infinite when stored as float16.
bool encode_blocks(const ImageTensor& image, const BlockCodec& codec, void* coefficients,
                   Dtype coefficient_dtype, int threads);
bool decode_blocks(const void* coefficients, Dtype coefficient_dtype, const BlockCodec& codec,
                   const ImageTensor& image, int threads);

}  // namespace laconic
