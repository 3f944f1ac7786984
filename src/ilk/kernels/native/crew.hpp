// Threads that share the parts of a job and stay awake for a moment after it: a pass over a small table takes less
// time than the waking of a processor.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define ILK_FORKS
#endif

#include "interface.hpp"

namespace ilk {

// Parts that any thread may do, and whose results are folded in the order of the parts, one at a time. The result of a
// part waits in one of `slots` places, so that memory stays bounded.
class Job {
public:
    using Step = std::function<void(Index part, Index slot)>;

    Job(Index parts, Index slots, Step work, Step fold)
        : parts_(parts), slots_(slots), work_(std::move(work)), fold_(std::move(fold)), ready_(slots) {}

    // Do parts until there is none left to take; `look` is called between them and ends the job by returning false.
    template <class Look>
    void help(Look look) {
        for (Index part = take(); part >= 0; part = take()) {
            try {
                work_(part, part % slots_);
                finish(part);
                if (!look()) end(nullptr);
            } catch (...) {
                end(std::current_exception());
            }
        }
    }

    void rethrow() const {
        if (error_) std::rethrow_exception(error_);
    }

private:
    Index take() {
        for (;; std::this_thread::sleep_for(std::chrono::microseconds(50))) {  // where one part is far behind
            const std::lock_guard lock(mutex_);
            if (ended_ || next_ == parts_) return -1;
            if (next_ < folded_ + slots_) return next_++;
        }
    }

    void finish(Index part) {
        const std::lock_guard lock(mutex_);
        for (ready_[part % slots_] = true; ready_[folded_ % slots_]; ++folded_) {
            ready_[folded_ % slots_] = false;
            fold_(folded_, folded_ % slots_);
        }
    }

    void end(std::exception_ptr error) {
        const std::lock_guard lock(mutex_);
        ended_ = true;
        if (!error_) error_ = error;
    }

    const Index parts_, slots_;
    const Step work_, fold_;
    std::mutex mutex_;  // of all below
    std::vector<bool> ready_;
    Index next_ = 0, folded_ = 0;
    bool ended_ = false;
    std::exception_ptr error_;
};

class Crew {
public:
    // The one of this process: threads of a parent are not there in a child. Never destroyed, its threads have no end.
    static Crew& here() {
        static const bool watched = [] {
#if defined(ILK_FORKS)
            pthread_atfork(nullptr, nullptr, [] { crew() = new Crew; });
#endif
            return true;
        }();
        (void)watched;
        return *crew();
    }

    // Do the job on at most so many threads, this one among them; alone where the crew is at work for another.
    template <class Look>
    void share(Job& job, Index threads, Look look) {
        const bool mine = threads > 1 && !taken_.test_and_set();
        if (mine) post(job, threads - 1);
        job.help(look);
        if (mine) {
            withdraw();
            taken_.clear();
        }
        job.rethrow();
    }

private:
    static constexpr std::chrono::microseconds awake{300};

    static Crew*& crew() {
        static Crew* one = new Crew;
        return one;
    }

    void post(Job& job, Index helpers) {
        const std::lock_guard lock(mutex_);
        try {
            for (; hired_ < helpers; ++hired_) std::thread([this] { serve(); }).detach();
        } catch (const std::system_error&) {  // no more threads here: the work is done by those there are
        }
        job_ = &job;
        wanted_ = helpers;
        posted_ = posted_ + 1;
        change_.notify_all();
    }

    // No one may begin with the job any more, and those who did have ended.
    void withdraw() {
        {
            const std::lock_guard lock(mutex_);
            wanted_ = 0;
        }
        await([this] { return active_ == 0; });
    }

    void serve() {
        for (Index seen = 0;;) {
            await([&] { return posted_ != seen; });
            {
                const std::lock_guard lock(mutex_);
                seen = posted_;
                if (wanted_ == 0) continue;
                --wanted_;
                active_ = active_ + 1;
            }
            job_->help([] { return true; });
            const std::lock_guard lock(mutex_);
            active_ = active_ - 1;
            change_.notify_all();
        }
    }

    // Awake for a moment, giving way to others, then asleep until something changes.
    template <class Holds>
    void await(Holds holds) {
        for (const auto until = std::chrono::steady_clock::now() + awake; std::chrono::steady_clock::now() < until;) {
            for (int look = 0; look < 100; ++look)
                if (holds()) return;
            std::this_thread::yield();
        }
        std::unique_lock lock(mutex_);
        change_.wait(lock, holds);
    }

    std::atomic_flag taken_;  // by the one whose job is done
    std::mutex mutex_;  // of all below
    std::condition_variable change_;
    Job* job_ = nullptr;
    Index hired_ = 0, wanted_ = 0;
    std::atomic<Index> posted_ = 0, active_ = 0;
};

}  // namespace ilk
