// From codes to a stream: count, choose books, learn every size, and write everything to its place.
#include <algorithm>
#include <cstring>

#include "huffman.h"
#include "huffman_plan.h"

namespace laconic {
namespace {

std::int64_t write_plain(HuffmanMode mode, const void* codes, std::int64_t bytes, std::uint8_t* stream) {
    *stream = static_cast<std::uint8_t>(mode);
    if (bytes > 0) std::memcpy(stream + 1, codes, static_cast<std::size_t>(bytes));
    return 1 + bytes;
}

// In words, with the books that take fewer bytes; raw where that takes fewer still.
std::int64_t write_words(const HuffmanJob& job, const HuffmanBooks* shared, std::uint8_t* stream, int threads) {
    const auto counts = allocate<SymbolTable>(job.chunks);
    StreamPlan own_plan(job, counts.get(), threads), shared_plan(shared ? job : HuffmanJob{}, counts.get(), threads);
    HuffmanBooks own;
    if (!counts || !own_plan.has_memory() || !shared_plan.has_memory()) return -1;
    count_chunks(job, threads, counts.get());
    if (!make_books({counts.get(), job.chunks, job.count}, threads, own)) return -1;
    own_plan.use(own, true);
    const bool share = shared && shared_plan.use(*shared, false) && shared_plan.size() < own_plan.size();
    StreamPlan& plan = share ? shared_plan : own_plan;
    const std::int64_t size = job.count * job.itemsize;
    if (plan.size() > size) return write_plain(HuffmanMode::raw, job.codes, size, stream);
    plan.write(stream);
    return plan.size();
}

}  // namespace

std::int64_t huffman_capacity(std::int64_t count, int itemsize) { return 1 + count * itemsize; }

std::int64_t huffman_encode(const void* codes, std::int64_t count, int itemsize, std::uint8_t* stream, int threads,
                            const std::uint8_t* book, std::size_t book_size) {
    HuffmanBooks shared;
    if (book_size > 0 && !read_books(itemsize, book, book_size, shared)) return -2;
    if (count < 2) return write_plain(HuffmanMode::raw, codes, count * itemsize, stream);
    if (!in_words(codes, count, itemsize)) return write_plain(HuffmanMode::constant, codes, itemsize, stream);
    return write_words(job_for(codes, count, itemsize), book_size > 0 ? &shared : nullptr, stream, threads);
}

}  // namespace laconic
