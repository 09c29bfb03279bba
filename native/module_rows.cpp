// Tensors come as in module.cpp; but many at once, each as a tuple.
#include "module_rows.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <tuple>
#include <utility>
#include <vector>

#include "threads.h"
#include "unique_rows.h"
#include "vlz.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace laconic;

namespace {

template <class T>
T* pointer(std::uintptr_t address) {
    return reinterpret_cast<T*>(address);
}

// Calls body(i) for every item, of `bytes` in all: side by side where they are worth it.
template <class Body>
void for_each_item(std::size_t items, std::int64_t bytes, int threads, Body body) {
    constexpr std::int64_t bytes_worth_threads = 1024 * 1024;
    const auto call = [](void* context, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) (*static_cast<Body*>(context))(static_cast<std::size_t>(i));
    };
    if (bytes < bytes_worth_threads || items < 2) threads = 1;
    parallel_for(static_cast<std::int64_t>(items), 1, threads, call, &body);
}

template <class Items>
std::int64_t bytes_of(const Items& items) {
    std::int64_t bytes = 0;
    for (const auto& item : items) bytes += std::get<1>(item) * std::get<2>(item);
    return bytes;
}

// What will be kept of many tensors' rows. Each comes with the address of its look-up indices, or 0.
class UniqueBatch {
public:
    using Item = std::tuple<std::uintptr_t, std::int64_t, std::int64_t, std::uintptr_t>;

    UniqueBatch(const std::vector<Item>& batch, int threads) : items_(batch.size()) {
        nb::gil_scoped_release release;
        for_each_item(batch.size(), bytes_of(batch), threads, [&](std::size_t i) {
            const auto& [address, count, bytes, given] = batch[i];
            items_[i].reset(new (std::nothrow) UniqueRows({pointer<const std::uint8_t>(address), count, bytes},
                                                          pointer<const std::int64_t>(given), threads));
        });
        for (const auto& item : items_) {
            if (!item || !item->has_memory()) throw std::bad_alloc();
        }
    }

    UniqueBatch(UniqueBatch&&) = default;  // and no copies: Python asks

    // (item, a row, another one) where two rows differ that were looked up at the same place.
    std::vector<std::tuple<std::size_t, std::int64_t, std::int64_t>> lies() const {
        std::vector<std::tuple<std::size_t, std::int64_t, std::int64_t>> found;
        for (std::size_t i = 0; i < items_.size(); ++i) {
            if (items_[i]->lying() >= 0) found.emplace_back(i, items_[i]->lying_before(), items_[i]->lying());
        }
        return found;
    }

    std::vector<std::pair<std::int64_t, std::int64_t>> sizes() const {
        std::vector<std::pair<std::int64_t, std::int64_t>> found;
        for (const auto& item : items_) found.emplace_back(item->kept(), item->index_size());
        return found;
    }

    // The kept rows of all, one behind the other, and all indices so.
    void write(std::uintptr_t rows_ptr, std::uintptr_t index_ptr) const {
        auto *rows = pointer<std::uint8_t>(rows_ptr), *index = pointer<std::uint8_t>(index_ptr);
        for (const auto& item : items_) {
            item->write(rows, index);
            rows += item->kept() * item->row_bytes();
            index += item->index_size();
        }
    }

private:
    std::vector<std::unique_ptr<UniqueRows>> items_;
};

// The rows to write, the kept ones and their number, and the index and its size.
using Stored = std::tuple<std::uintptr_t, std::int64_t, std::int64_t, std::uintptr_t, std::int64_t, std::uintptr_t,
                          std::size_t>;

// Gives the first item whose index is none; -1 for none.
std::int64_t decode_rows(const std::vector<Stored>& batch, int threads) {
    std::atomic<std::int64_t> wrong{-1};
    for_each_item(batch.size(), bytes_of(batch), threads, [&](std::size_t i) {
        const auto& [to, count, bytes, kept, kept_count, index, size] = batch[i];
        if (!read_unique_rows({pointer<const std::uint8_t>(kept), kept_count, bytes},
                              pointer<const std::uint8_t>(index), size, count, pointer<std::uint8_t>(to), threads)) {
            wrong = static_cast<std::int64_t>(i);
        }
    });
    return wrong;
}

// Codes, where their stream goes, and the size of a code.
using Source = std::tuple<std::uintptr_t, std::int64_t, std::int64_t, std::uintptr_t, int>;

// The streams' sizes.
std::vector<std::int64_t> encode_vlz(const std::vector<Source>& batch, std::int64_t window, std::int64_t block,
                                     int threads) {
    std::vector<std::int64_t> sizes(batch.size());
    for_each_item(batch.size(), bytes_of(batch), threads, [&](std::size_t i) {
        const auto& [address, count, bytes, stream, itemsize] = batch[i];
        sizes[i] = vlz_encode({pointer<const std::uint8_t>(address), count, bytes}, itemsize, {window, block},
                              pointer<std::uint8_t>(stream), threads);
    });
    for (const std::int64_t size : sizes) {
        if (size < 0) throw std::bad_alloc();
    }
    return sizes;
}

// Where the codes go, their stream, and the size of a code.
using Target = std::tuple<std::uintptr_t, std::int64_t, std::int64_t, std::uintptr_t, std::size_t, int>;

std::int64_t decode_vlz(const std::vector<Target>& batch, int threads) {
    std::atomic<std::int64_t> wrong{-1};
    for_each_item(batch.size(), bytes_of(batch), threads, [&](std::size_t i) {
        const auto& [to, count, bytes, stream, size, itemsize] = batch[i];
        if (!vlz_decode(pointer<const std::uint8_t>(stream), size, pointer<std::uint8_t>(to), count, bytes, itemsize,
                        threads)) {
            wrong = static_cast<std::int64_t>(i);
        }
    });
    return wrong;
}

}  // namespace

void bind_rows(nb::module_& m) {
    nb::class_<UniqueBatch>(m, "UniqueBatch", "What will be kept of many tensors' rows.")
        .def(nb::init<const std::vector<UniqueBatch::Item>&, int>(), "batch"_a, "threads"_a,
             "(pointer, rows, bytes of a row, pointer to as many int64 or 0) of each.")
        .def("lies", &UniqueBatch::lies, "(item, row, row) where look-up indices are the same, and rows are not.")
        .def("sizes", &UniqueBatch::sizes, "(rows, bytes of the index) that are kept of each.")
        .def("write", &UniqueBatch::write, "rows_ptr"_a, "index_ptr"_a, nb::call_guard<nb::gil_scoped_release>(),
             "All kept rows, and all indices, one behind the other.");
    m.def("rows_decode", &decode_rows, "batch"_a, "threads"_a, nb::call_guard<nb::gil_scoped_release>(),
          "(pointer, rows, bytes of a row, kept_ptr, kept rows, index_ptr, its size) of each. Gives the number of one "
          "whose index is none, or -1.");
    m.def("vlz_encode", &encode_vlz, "batch"_a, "window"_a, "block"_a, "threads"_a,
          nb::call_guard<nb::gil_scoped_release>(),
          "(pointer, rows, bytes of a row, stream_ptr, bytes of a code) of each. Gives the streams' sizes.");
    m.def("vlz_decode", &decode_vlz, "batch"_a, "threads"_a, nb::call_guard<nb::gil_scoped_release>(),
          "(pointer, rows, bytes of a row, stream_ptr, its size, bytes of a code) of each. Gives the number of one "
          "whose stream is none, or -1.");
}
