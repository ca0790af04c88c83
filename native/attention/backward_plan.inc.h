// Backward, divided into tasks for threads. Part of kernels.inc.h.

#include "cpu/threads.h"

namespace relakit::attention::RELAKIT_ISA {
namespace {

constexpr std::int64_t kBackwardBlock = 1024;  // queries or keys per task, if there are few heads

// How backward is divided into tasks: one per key head or, if there are fewer heads than threads,
// one per block of queries and then one per block of keys. Scores are then computed twice, but all
// threads have work.
enum class Share { key_heads, query_blocks, key_blocks };

struct BackwardPlan {
  BackwardJob* jobs;
  std::int64_t count, tasks;
  int threads;

  std::int64_t blocks(const Problem& p, Share share) const {
    const std::int64_t rows = share == Share::query_blocks ? p.queries : p.keys;
    return share == Share::key_heads ? 1 : (rows + kBackwardBlock - 1) / kBackwardBlock;
  }

  void divide(Share share) {
    tasks = number_tasks(jobs, count, [&](const Problem& p) {
      const std::int64_t heads = share == Share::query_blocks ? p.heads : p.key_heads;
      return p.batch * heads * blocks(p, share);
    });
  }
};

template <class T>
void backward_key_head(const BackwardPlan& plan, std::int64_t task) {
  const BackwardJob& job = job_of(plan.jobs, plan.count, task);
  const Problem& p = job.problem;
  const TaskPart part = part_of(job, task, p.key_heads, 1);
  const std::int64_t group = p.heads / p.key_heads;
  BackwardTask<T> work(p, job.result, part.batch, part.head, {0, p.queries}, {0, p.keys}, true,
                       true);
  if (task + plan.threads < plan.tasks) {
    const BackwardJob& later = job_of(plan.jobs, plan.count, task + plan.threads);
    if (is_short<T>(later.problem, 2)) {
      const TaskPart next = part_of(later, task + plan.threads, later.problem.key_heads, 1);
      work.fetch_ahead(later, next.batch, next.head);
    }
  }
  work.run(part.head * group, (part.head + 1) * group);
}

template <class T>
void backward_query_block(const BackwardPlan& plan, std::int64_t task) {
  const BackwardJob& job = job_of(plan.jobs, plan.count, task);
  const Problem& p = job.problem;
  const TaskPart part = part_of(job, task, p.heads, plan.blocks(p, Share::query_blocks));
  const std::int64_t begin = part.block * kBackwardBlock;
  BackwardTask<T>(p, job.result, part.batch, part.head / (p.heads / p.key_heads),
                  {begin, least(begin + kBackwardBlock, p.queries)}, {0, p.keys}, true, false)
      .run(part.head, part.head + 1);
}

template <class T>
void backward_key_block(const BackwardPlan& plan, std::int64_t task) {
  const BackwardJob& job = job_of(plan.jobs, plan.count, task);
  const Problem& p = job.problem;
  const TaskPart part = part_of(job, task, p.key_heads, plan.blocks(p, Share::key_blocks));
  const std::int64_t group = p.heads / p.key_heads, begin = part.block * kBackwardBlock;
  BackwardTask<T>(p, job.result, part.batch, part.head, {0, p.queries},
                  {begin, least(begin + kBackwardBlock, p.keys)}, false, true)
      .run(part.head * group, (part.head + 1) * group);
}

template <class T>
void backward_all(BackwardJob* jobs, std::int64_t count, int threads) {
  BackwardPlan plan{jobs, count, 0, threads};
  const auto run = [&](void (*task)(void*, std::int64_t)) {
    run_parallel(plan.tasks, threads, task, &plan);
  };
  plan.divide(Share::key_heads);
  if (plan.tasks >= threads) {
    run([](void* data, std::int64_t task) {
      backward_key_head<T>(*static_cast<BackwardPlan*>(data), task);
    });
    return;
  }
  plan.divide(Share::query_blocks);
  run([](void* data, std::int64_t task) {
    backward_query_block<T>(*static_cast<BackwardPlan*>(data), task);
  });
  plan.divide(Share::key_blocks);
  run([](void* data, std::int64_t task) {
    backward_key_block<T>(*static_cast<BackwardPlan*>(data), task);
  });
}

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
