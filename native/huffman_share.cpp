// Books for many tensors at once, where those save more than they take.
#include <algorithm>
#include <cstring>

#include "huffman.h"
#include "huffman_plan.h"

namespace laconic {
namespace {

// In the buffer for the wire, books have a length beside them.
constexpr std::int64_t kBytesOfLength = 8;

static_assert(kMostSharedBytes == kMostBooks * kMaxBookBytes);

class Batch {
public:
    Batch(std::int64_t size, int threads)
        : threads_(threads),
          jobs_(allocate<HuffmanJob>(size)),
          first_chunks_(allocate<std::int64_t>(size)),
          savings_(allocate<std::int64_t>(size)) {}

    bool has_memory() const { return jobs_ && first_chunks_ && savings_; }

    void add(const HuffmanJob& job) {
        jobs_[size_] = job;
        first_chunks_[size_++] = chunks_;
        chunks_ += job.chunks;
        codes_ += job.count;
    }

    // False without memory.
    bool make(HuffmanBooks& books) {
        counts_ = allocate<SymbolTable>(chunks_);
        if (!counts_) return false;
        over_jobs([this](std::int64_t i, int threads) { count_chunks(jobs_[i], threads, counts_of(i)); });
        return size_ < 2 || make_books({counts_.get(), chunks_, codes_}, threads_, books);
    }

    // By how many bytes all streams together would be smaller; negative without memory.
    std::int64_t saved_by(const HuffmanBooks& books) {
        over_jobs([&](std::int64_t i, int threads) { savings_[i] = saved_by(books, i, threads); });
        std::int64_t saved = 0;
        for (std::int64_t i = 0; i < size_; ++i) {
            if (savings_[i] < 0) return -1;
            saved += savings_[i];
        }
        return saved;
    }

private:
    SymbolTable* counts_of(std::int64_t i) const { return counts_.get() + first_chunks_[i]; }

    std::int64_t saved_by(const HuffmanBooks& books, std::int64_t i, int threads) const {
        const HuffmanJob& job = jobs_[i];
        HuffmanBooks own;
        StreamPlan plan(job, counts_of(i), threads);
        if (!plan.has_memory() || !make_books({counts_of(i), job.chunks, job.count}, threads, own)) return -1;
        plan.use(own, true);
        const std::int64_t alone = std::min(plan.size(), 1 + job.count * job.itemsize);
        plan.use(books, false);
        return std::max(alone - plan.size(), std::int64_t{0});
    }

    // Calls body(job's number, threads to use): many small ones side by side, a few large ones one after another.
    template <class Body>
    void over_jobs(Body body) {
        constexpr std::int64_t large = 256 * 1024;
        if (size_ > 0 && codes_ / size_ >= large) {
            for (std::int64_t i = 0; i < size_; ++i) body(i, threads_);
            return;
        }
        const auto call = [](void* context, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) (*static_cast<Body*>(context))(i, 1);
        };
        parallel_for(size_, 1, threads_, call, &body);
    }

    const int threads_;
    std::int64_t size_ = 0, chunks_ = 0, codes_ = 0;
    std::unique_ptr<HuffmanJob[]> jobs_;
    std::unique_ptr<std::int64_t[]> first_chunks_, savings_;
    std::unique_ptr<SymbolTable[]> counts_;
};

}  // namespace

std::int64_t huffman_share(const HuffmanCodes* batch, std::int64_t size, int itemsize, std::uint8_t* book,
                           int threads) {
    Batch worded(size, threads);
    HuffmanBooks books;
    if (!worded.has_memory()) return -1;
    for (std::int64_t i = 0; i < size; ++i) {
        if (in_words(batch[i].codes, batch[i].count, itemsize)) {
            worded.add(job_for(batch[i].codes, batch[i].count, itemsize));
        }
    }
    if (!worded.make(books)) return -1;
    const std::int64_t saved = books.size > 0 ? worded.saved_by(books) : 0;
    if (saved <= kBytesOfLength + static_cast<std::int64_t>(books.bytes)) return std::min(saved, std::int64_t{0});
    std::memcpy(book, books.stored, books.bytes);
    return static_cast<std::int64_t>(books.bytes);
}

}  // namespace laconic
