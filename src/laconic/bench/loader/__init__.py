"""The loader study: samples a second from disk to a training loop, packed and beside raw files, Zarr and JPEG."""
