#include "cpu/threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace relakit {

namespace {

// Worker threads that sleep between calls. Not OpenMP: torch comes with its own OpenMP runtime, and
// two of them in one process compete for the cores.
class Pool {
 public:
  void run(std::int64_t count, int threads, const std::function<void(std::int64_t)>& task) {
    std::lock_guard<std::mutex> turn(one_caller_);
    int helpers = 0;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      start_workers(threads - 1);
      helpers = std::min(threads - 1, static_cast<int>(workers_.size()));
      task_ = &task;
      count_ = count;
      next_ = 0;
      wanted_ = helpers;
    }
    for (int i = 0; i < helpers; i++) wake_.notify_one();
    work(task, count);
    std::unique_lock<std::mutex> lock(mutex_);
    wanted_ = 0;  // do not wait for workers that wake up only now
    done_.wait(lock, [this] { return running_ == 0; });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  // If the system allows no more threads, the existing ones do the work.
  void start_workers(int wanted) {
    try {
      while (static_cast<int>(workers_.size()) < wanted) {
        workers_.emplace_back([this] { serve(); });
      }
    } catch (const std::system_error&) {
    }
  }

  // An exception, such as std::bad_alloc, stops all workers; the caller gets the first one.
  void work(const std::function<void(std::int64_t)>& task, std::int64_t count) {
    try {
      for (std::int64_t i = next_++; i < count; i = next_++) task(i);
    } catch (...) {
      next_ = count;
      std::lock_guard<std::mutex> lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  // Any worker may join a call. One that joins the same call a second time finds no work left.
  void serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return wanted_ > 0; });
      wanted_--;
      running_++;
      const auto* task = task_;
      const std::int64_t count = count_;
      lock.unlock();
      work(*task, count);
      lock.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }

  std::mutex one_caller_, mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> workers_;
  const std::function<void(std::int64_t)>* task_ = nullptr;
  std::int64_t count_ = 0;
  std::atomic<std::int64_t> next_{0};
  int wanted_ = 0, running_ = 0;  // workers that may still join the caller, and those that have
  std::exception_ptr failure_;
};

// Never destroyed: at exit the workers may already be gone, and joining them would wait forever.
Pool* pool = nullptr;
std::once_flag prepared;

Pool& current_pool() {
  std::call_once(prepared, [] {
    pool = new Pool;
#if !defined(_WIN32)
    // A forked process has none of its parent's threads: it starts a pool of its own.
    pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });
#endif
  });
  return *pool;
}

}  // namespace

void run_parallel(std::int64_t count, int threads, void (*function)(void*, std::int64_t),
                  void* data) {
  const auto task = [=](std::int64_t index) { function(data, index); };
  threads = static_cast<int>(std::min<std::int64_t>(threads, count));
  if (threads <= 1) {
    for (std::int64_t i = 0; i < count; i++) task(i);
    return;
  }
  current_pool().run(count, threads, task);
}

}  // namespace relakit
