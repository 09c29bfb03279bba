"""What the demonstration's page says of each word it uses."""

WORDS = {
    "Ratio": "Bytes of the tensor in memory (float32) over bytes stored, headers and scales included. Of 8-bit "
    "images, as cameras write them, the same codec saves a quarter of that.",
    "PSNR": "Peak signal-to-noise ratio: how small the mean squared error is, in decibels; here for values from 0 to 1 "
    "and over all four pictures. Each 6 dB halve the error; above some 35 dB few eyes see any.",
    "SSIM": "Structural similarity, from 0 to 1: whether edges and texture are still where they were.",
    "dct:chop=4": "Cuts the image into blocks of 8 x 8, takes the cosine transform that JPEG takes, and keeps the "
    "4 x 4 lowest frequencies of each. The size is known before the data are.",
    "keep=triangle": "Keeps the frequencies i + j < chop, and leaves out the corner of the square, "
    "which only holds fine diagonals.",
    "zfp, hadamard": "The same machinery on other transforms: that of the ZFP compressor on 4 x 4 blocks, "
    "and one that only adds and subtracts.",
    "cast, affine": "Fewer bits for each kept coefficient: 16-bit floats, or 8-bit codes on an even grid.",
    "Test loss": "Mean squared error of the trained network on images it has never seen. Smaller is better.",
    "Change": "That loss against training on uncompressed data, with the same patches, noise, initial weights "
    "and order. With it, the least and the greatest of the seeds: on both sides of zero, they show no difference.",
    "Seed": "Decides the patches, the noise, the initial weights and their order. Several seeds show how much of a "
    "difference is luck.",
    "Raw inputs": "The same network fed with uncompressed test images: what happens if only the training set was "
    "stored compressed, and the data in use never are.",
    "Encode, decode": "Gigabytes of uncompressed data for each second: the median of warm runs, taken in turns, "
    "writing into memory that is there already. Reading files and copies to a GPU are not included.",
}

RATE_NOTES = (
    "Fewer bits for each coefficient come almost free: float16 halves the bytes, 8-bit codes quarter them, "
    "and the curve moves right while it hardly sinks.",
    "Fewer frequencies are what costs: each step down a line is a smaller chop.",
    "The triangle and the square keep pace: the triangle has sizes between the square's.",
    "The cosine transform beats the Hadamard transform, which has no multiplications to pay for.",
)
"""How to read the rate-distortion plot. The pictures are always the same, and so is what it shows."""

TRAINING_NOTES = (
    "To the left of zero are networks better than the one trained uncompressed, to the right worse.",
    "Where the dots of two codecs mingle, their difference may well be chance.",
    "A codec takes away noise as well as detail: early in training that helps; in the end, with a strong one, the "
    "detail is missed.",
)
"""How to read the plots of the training."""
