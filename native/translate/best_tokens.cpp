#include "translate/best_tokens.h"

#include <algorithm>
#include <cmath>

#include "translate/buffers.h"
#include "translate/parallel_for.h"

namespace relakit::translate {

namespace {

constexpr std::int64_t kGroup = 16;  // panels whose exponentials are added up together

// Insert into a list sorted by descending score; among equals, the first one stays in front.
template <class Score, class Move, class Set>
void insert(std::int64_t count, float score, const Score& score_at, const Move& move,
            const Set& set) {
  std::int64_t place = count - 1;
  if (!(score > score_at(place))) return;
  for (; place > 0 && score > score_at(place - 1); place--) move(place - 1, place);
  set(place);
}

}  // namespace

BestTokens::BestTokens(const Choice& choice, std::int64_t rows, std::int64_t panels, int threads)
    : choice_(choice),
      rows_(rows),
      panels_(panels),
      groups_((panels + kGroup - 1) / kGroup),
      parts_(std::min<std::int64_t>(groups_, threads)),
      sums_(as_index(groups_ * rows), Sum{-INFINITY, 0.0f}),
      found_(as_index(parts_ * rows * choice.count), Found{-INFINITY, choice.end}),
      end_logits_(as_index(rows), -INFINITY) {}

void BestTokens::look(const Machine& machine, const LinearCall& call) {
  parallel_for(parts_, machine.threads, 1, [&](std::int64_t part) {
    Buffer<float> logits(as_index(rows_ * kPanel));
    for (std::int64_t group = groups_ * part / parts_; group < groups_ * (part + 1) / parts_;
         group++) {
      look_at_group(machine, call, part, group, logits);
    }
  });
  join_parts();
}

void BestTokens::look_at_group(const Machine& machine, const LinearCall& whole, std::int64_t part,
                               std::int64_t group, Buffer<float>& logits) {
  for (std::int64_t panel = group * kGroup; panel < std::min((group + 1) * kGroup, panels_);
       panel++) {
    LinearCall call = whole;
    call.y = logits.data();
    call.y_stride = kPanel;
    call.first_output = panel * kPanel;
    machine.kernels->linear(call, panel, panel + 1);
    for (std::int64_t row = 0; row < rows_; row++) {
      float* row_logits = logits.data() + row * kPanel;
      Sum& sum = sums_[as_index(group * rows_ + row)];
      const float largest =
          machine.kernels->add_exponentials(row_logits, &sum.largest, &sum.sum);
      if (choice_.end / kPanel == panel) {
        end_logits_[as_index(row)] = row_logits[choice_.end % kPanel];
      }
      look_at_row(row_logits, panel, largest, found_in(part, row));
    }
  }
}

void BestTokens::look_at_row(float* logits, std::int64_t panel, float largest,
                             Found* found) const {
  if (!(largest > found[choice_.count - 1].logit)) return;
  for (const std::int64_t token : choice_.forbidden) {
    if (token / kPanel == panel) logits[token % kPanel] = -INFINITY;
  }
  for (std::int64_t i = 0; i < kPanel; i++) keep({logits[i], panel * kPanel + i}, found);
}

void BestTokens::keep(const Found& one, Found* found) const {
  insert(
      choice_.count, one.logit, [&](std::int64_t at) { return found[at].logit; },
      [&](std::int64_t from, std::int64_t to) { found[to] = found[from]; },
      [&](std::int64_t at) { found[at] = one; });
}

void BestTokens::join_parts() {
  for (std::int64_t part = 1; part < parts_; part++) {
    for (std::int64_t row = 0; row < rows_; row++) {
      const Found* more = found_in(part, row);
      for (std::int64_t i = 0; i < choice_.count; i++) keep(more[i], found_in(0, row));
    }
  }
}

std::vector<float> BestTokens::log_normalisers() const {
  std::vector<float> normalisers(as_index(rows_));
  for (std::int64_t row = 0; row < rows_; row++) {
    float largest = -INFINITY;
    for (std::int64_t group = 0; group < groups_; group++) {
      largest = std::max(largest, sums_[as_index(group * rows_ + row)].largest);
    }
    float total = 0.0f;
    for (std::int64_t group = 0; group < groups_; group++) {
      const Sum& sum = sums_[as_index(group * rows_ + row)];
      total += sum.sum * std::exp(sum.largest - largest);
    }
    normalisers[as_index(row)] = largest + std::log(total);
  }
  return normalisers;
}

void BestTokens::merge(std::int64_t sentence, std::int64_t beams, const float* scores,
                       const std::vector<float>& normalisers, const Candidates& best) const {
  float* best_scores = best.scores + sentence * choice_.count;
  std::int64_t* best_beams = best.beams + sentence * choice_.count;
  std::int64_t* best_tokens = best.tokens + sentence * choice_.count;
  std::fill(best_scores, best_scores + choice_.count, -INFINITY);
  std::fill(best_beams, best_beams + choice_.count, 0);
  std::fill(best_tokens, best_tokens + choice_.count, choice_.end);
  const auto offer = [&](float score, std::int64_t beam, std::int64_t token) {
    insert(
        choice_.count, score, [&](std::int64_t at) { return best_scores[at]; },
        [&](std::int64_t from, std::int64_t to) {
          best_scores[to] = best_scores[from];
          best_beams[to] = best_beams[from];
          best_tokens[to] = best_tokens[from];
        },
        [&](std::int64_t at) {
          best_scores[at] = score;
          best_beams[at] = beam;
          best_tokens[at] = token;
        });
  };
  for (std::int64_t beam = 0; beam < beams; beam++) {
    const std::int64_t row = sentence * beams + beam;
    const float offset = scores[beam] - normalisers[as_index(row)];
    if (choice_.must_end != nullptr && choice_.must_end[sentence]) {
      offer(offset + end_logits_[as_index(row)], beam, choice_.end);
      continue;
    }
    const Found* found = found_.data() + row * choice_.count;
    for (std::int64_t i = 0; i < choice_.count; i++) {
      offer(offset + found[i].logit, beam, found[i].token);
    }
  }
}

}  // namespace relakit::translate
