#include "threads.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace laconic {
namespace {

constexpr int kSpins = 2000;

void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

struct Work {
    std::int64_t count;
    std::int64_t grain;
    RangeBody body;
    void* context;
    std::atomic<std::int64_t> next{0};

    void take_ranges() {
        for (;;) {
            const std::int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
            if (begin >= count) return;
            body(context, begin, begin + grain < count ? begin + grain : count);
        }
    }
};

class Helpers {
public:
    // Helpers that are not awake in time miss the work: the caller never waits for one to begin.
    void run(Work& work, int wanted) {
        while (started_ < wanted && start_one()) {
        }
        {
            std::lock_guard lock(mutex_);
            work_ = &work;
            places_ = wanted;
        }
        wake_.notify_all();
        work.take_ranges();
        {
            std::lock_guard lock(mutex_);
            places_ = 0;
        }
        // Whoever is still at it has less than one range to go: going to sleep would take longer.
        for (int spin = 0; spin < kSpins && working_ > 0; ++spin) pause_briefly();
        std::unique_lock lock(mutex_);
        idle_.wait(lock, [this] { return working_ == 0; });
    }

private:
    bool start_one() {
        // Signals are for the interpreter's threads: Ctrl-C has to interrupt what they wait for.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        bool started = true;
        try {
            std::thread(&Helpers::help_forever, this).detach();
            ++started_;
        } catch (const std::system_error&) {
            started = false;
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        return started;
    }

    [[noreturn]] void help_forever() {
        std::unique_lock lock(mutex_);
        for (;;) {
            wake_.wait(lock, [this] { return places_ > 0; });
            --places_;
            ++working_;
            Work& work = *work_;
            lock.unlock();
            work.take_ranges();
            lock.lock();
            if (--working_ == 0) idle_.notify_one();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_, idle_;
    Work* work_ = nullptr;
    int places_ = 0;   // helpers that may still join the work
    std::atomic<int> working_{0};  // helpers that did and have not finished
    int started_ = 0;
};

// Never destroyed: the threads sleep in it until the process ends.
Helpers* helpers = nullptr;
std::atomic<bool> helpers_busy{false};

// A forked child has a copy of the helpers' state but none of their threads: it starts anew.
void forget_helpers() {
    helpers = nullptr;
    helpers_busy = false;
}

}  // namespace

void parallel_for(std::int64_t count, std::int64_t grain, int threads, RangeBody body, void* context) {
    if (threads <= 1 || count <= grain || helpers_busy.exchange(true)) {
        return body(context, 0, count);
    }
    if (helpers == nullptr) {
        static const int registered = pthread_atfork(nullptr, nullptr, forget_helpers);
        static_cast<void>(registered);
        helpers = new Helpers;
    }
    Work work{count, grain, body, context};
    helpers->run(work, threads - 1);
    helpers_busy = false;
}

}  // namespace laconic
