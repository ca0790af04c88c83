// The pool of threads: every task runs once, an exception arrives, and nobody waits for a worker that has
// nothing to do.

#include "cpu/threads.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>

#include "check.h"

#if defined(__linux__)
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#endif

namespace relakit::check {

namespace {

using Task = std::function<void(std::int64_t)>;

void run(std::int64_t count, int threads, Task task) {
  run_parallel(
      count, threads,
      [](void* data, std::int64_t index) { (*static_cast<Task*>(data))(index); }, &task);
}

// Returns when so many threads are here.
class Meeting {
 public:
  explicit Meeting(int threads) : missing_(threads) {}
  void arrive() {
    missing_--;
    while (missing_ > 0) std::this_thread::yield();
  }

 private:
  std::atomic<int> missing_;
};

void check_tasks() {
  bool is_once = true;
  for (int threads : {2, 7, 3, 8, 1}) {
    for (std::int64_t count : {0, 1, 2, 5, 100}) {
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(count));
      run(count, threads, [&](std::int64_t i) { times[static_cast<std::size_t>(i)]++; });
      for (const auto& time : times) is_once = is_once && time == 1;
    }
  }
  expect(is_once, "every task runs once");
  Meeting all(5);
  run(5, 5, [&](std::int64_t) { all.arrive(); });
  expect(true, "as many threads as wanted meet");
}

void check_exceptions() {
  for (int i = 0; i < 20; i++) {
    bool is_thrown = false;
    try {
      run(50, 4, [](std::int64_t task) {
        if (task == 3) throw std::runtime_error("task 3");
      });
    } catch (const std::runtime_error&) {
      is_thrown = true;
    }
    expect(is_thrown, "an exception reaches the caller");
  }
}

#if defined(__linux__)

int release_pipe[2];
std::atomic<bool> is_held{false}, is_let_go{false};

// Keeps the thread that gets the signal here, until something is in the pipe, or for a while.
void hold(int) {
  is_held = true;
  pollfd end{release_pipe[0], POLLIN, 0};
  poll(&end, 1, 2000);
  is_let_go = true;
}

// Whether a call ends though the worker that may help is held up.
bool ends_without_a_worker() {
  const pthread_t caller = pthread_self();
  pthread_t worker = caller;
  Meeting both(2);
  run(2, 2, [&](std::int64_t) {
    both.arrive();
    if (!pthread_equal(pthread_self(), caller)) worker = pthread_self();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it goes to sleep, and holds no lock
  is_held = is_let_go = false;
  pthread_kill(worker, SIGUSR1);
  while (!is_held) std::this_thread::yield();
  run(4, 2, [](std::int64_t) {});
  const bool ends = !is_let_go;
  char byte = 0;
  if (write(release_pipe[1], &byte, 1) != 1) return false;
  while (!is_let_go) std::this_thread::yield();
  return read(release_pipe[0], &byte, 1) == 1 && ends;
}

// How often threads of this process other than the first have gone to sleep.
long sleeps_of_workers() {
  long sum = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    if (thread.path().filename() == std::to_string(getpid())) continue;
    std::ifstream status(thread.path() / "status");
    for (std::string name; status >> name;) {
      long number = 0;
      if (name == "voluntary_ctxt_switches:" && status >> number) sum += number;
    }
  }
  return sum;
}

void check_waiting() {
  if (pipe(release_pipe) != 0) return;
  signal(SIGUSR1, hold);
  // On a busy machine a worker may be caught before it sleeps, with the lock; hardly every time.
  bool ends = false;
  for (int i = 0; i < 5 && !ends; i++) ends = ends_without_a_worker();
  expect(ends, "a call does not wait for a worker that does not come");

  Meeting many(8);
  run(8, 8, [&](std::int64_t) { many.arrive(); });
  constexpr int calls = 100;
  const long before = sleeps_of_workers();
  for (int i = 0; i < calls; i++) {
    run(2, 2, [](std::int64_t) {});
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // A worker that is woken may sleep again for each of the locks, too.
  expect(sleeps_of_workers() - before <= 4 * calls, "a call for two wakes no more than one worker");
}

#endif

}  // namespace

void check_threads() {
  begin("all sets", "threads");
#if defined(__linux__)
  check_waiting();  // first: there are no other workers yet
#endif
  check_tasks();
  check_exceptions();
}

}  // namespace relakit::check
