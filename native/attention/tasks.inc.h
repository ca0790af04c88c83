// From the number of a task to its part of the work. Part of kernels.inc.h.

namespace relakit::attention::RELAKIT_ISA {
namespace {

// Number the tasks of all jobs in order. A job has tasks_of(problem) tasks. Returns the total.
template <class Result, class Count>
std::int64_t number_tasks(Job<Result>* jobs, std::int64_t count, const Count& tasks_of) {
  std::int64_t tasks = 0;
  for (std::int64_t i = 0; i < count; i++) {
    jobs[i].first_task = tasks;
    tasks += tasks_of(jobs[i].problem);
  }
  return tasks;
}

// The job that a task belongs to: the last one whose first task is not after this task. A job
// without tasks has the same first task as the next job.
template <class Result>
const Job<Result>& job_of(const Job<Result>* jobs, std::int64_t count, std::int64_t task) {
  std::int64_t low = 0, high = count;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (jobs[middle].first_task <= task ? low : high) = middle;
  }
  return jobs[low];
}

// Which rows of a job a task works on. A job's tasks are ordered by sequence, then head, then block
// of rows.
struct TaskPart {
  std::int64_t batch, head, block;
};

template <class Result>
TaskPart part_of(const Job<Result>& job, std::int64_t task, std::int64_t heads,
                 std::int64_t blocks) {
  const std::int64_t mine = task - job.first_task, pair = mine / blocks;
  return {pair / heads, pair % heads, mine % blocks};
}

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
