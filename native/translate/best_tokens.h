#pragma once

#include <cstdint>
#include <vector>

#include "translate/search.h"

namespace relakit::translate {

// Finds the best tokens of every row, and the normaliser of its probabilities, panel by panel:
// logits are used while they are in the cache, and never kept.
class BestTokens {
 public:
  BestTokens(const Choice& choice, std::int64_t rows, std::int64_t panels, int threads);

  // `call` computes the logits; where to write them is filled in here.
  void look(const Machine& machine, const LinearCall& call);
  // log(sum(exp(logits))) of each row.
  std::vector<float> log_normalisers() const;
  // Writes the best continuations of a sentence to `best`; `scores` are the scores of its beams.
  void merge(std::int64_t sentence, std::int64_t beams, const float* scores,
             const std::vector<float>& normalisers, const Candidates& best) const;

 private:
  struct Found {
    float logit;
    std::int64_t token;
  };
  struct Sum {
    float largest, sum;
  };

  void look_at_group(const Machine& machine, const LinearCall& call, std::int64_t part,
                     std::int64_t group, Buffer<float>& logits);
  void look_at_row(float* logits, std::int64_t panel, float largest, Found* found) const;
  // Insert into the list of a row, which is sorted best first, if it is good enough.
  void keep(const Found& one, Found* found) const;
  // Merges the lists of all parts into the first part's. By logits, as a single part would: two
  // logits may give equal scores, and the better must come first with any number of threads.
  void join_parts();
  Found* found_in(std::int64_t part, std::int64_t row) {
    return found_.data() + (part * rows_ + row) * choice_.count;
  }

  const Choice& choice_;
  std::int64_t rows_, panels_, groups_, parts_;
  std::vector<Sum> sums_;          // [groups, rows]; groups do not depend on the number of threads
  std::vector<Found> found_;       // [parts, rows, count], best first; part 0 gets the best of all
  std::vector<float> end_logits_;  // [rows]
};

}  // namespace relakit::translate
