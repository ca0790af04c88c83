#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "translate/encoder.h"
#include "translate/kept_memory.h"
#include "translate/sublayers.h"

namespace relakit::translate {

// What `choose` has to find after a step.
struct Choice {
  std::int64_t count = 0;  // candidates per sentence
  std::vector<std::int64_t> forbidden;  // tokens that are never chosen
  const bool* must_end = nullptr;  // [batch]: whether only the end token may follow; null: never
  std::int64_t end = 0;            // the end token
};

// The best continuations, best first: [batch, count] each.
struct Candidates {
  float* scores = nullptr;
  std::int64_t* beams = nullptr;
  std::int64_t* tokens = nullptr;
};

// The tokens that may follow in one sentence, and the output layer for these tokens alone.
struct Shortlist {
  std::vector<std::int64_t> tokens;  // the end token first
  PackedLinear output;
};

// The running hypotheses of some sentences, `beams` for each, and their tokens' keys and values.
class Search {
 public:
  Search(std::shared_ptr<const Model> model, Memory memory, std::int64_t beams);

  // Restrict `choose` to a list of tokens for each sentence; their probabilities then add up to 1.
  // Each list starts with the end token.
  void allow(const Machine& machine, const std::vector<std::vector<std::int64_t>>& lists);

  // Read the next token of every beam, [batch, beams]; `position` is the vector of its position.
  // All beams of a sentence have the same first token.
  void step(const Machine& machine, const std::int64_t* tokens, const float* position);
  // Copies the step's states, [batch * beams, dim]. Like `choose`, only right after a step;
  // otherwise throws std::logic_error.
  void copy_states(float* states) const;
  // Finds the best continuations of each sentence by scores[batch, beams] plus log-probability.
  // After the first step only the first beam is continued, as the others are the same. Returns
  // false if the model's scores are not finite.
  bool choose(const Machine& machine, const Choice& choice, const float* scores,
              const Candidates& best);

  // Continue each beam from a beam of the same sentence: parents[batch, beams].
  void reorder(const std::int64_t* parents);
  // Drop all sentences except those at these places, given in ascending order.
  void keep(const std::vector<std::int64_t>& sentences);

 private:
  std::int64_t batch() const { return static_cast<std::int64_t>(sources_.size()); }
  // Before the second token all beams of a sentence are the same, so only the first is computed.
  std::int64_t distinct_beams() const { return steps_ <= 1 ? 1 : beams_; }
  void check_tokens(const std::int64_t* tokens) const;
  void check_states() const;
  void grow();
  bool choose_from_list(const Machine& machine, const LinearCall& all, std::int64_t sentence,
                        const Choice& choice, const float* scores, const Candidates& best) const;
  void attend_to_target(const Machine& machine, std::size_t layer);
  void attend_to_source(const Machine& machine, std::size_t layer);

  std::shared_ptr<const Model> model_;
  Memory memory_;
  std::vector<std::shared_ptr<const Shortlist>> shortlists_;  // for all in the memory; or none
  Sublayers sublayers_;
  std::int64_t beams_, longest_source_ = 0, capacity_ = 0, steps_ = 0;
  std::vector<std::int64_t> sources_;    // each sentence's place in the memory
  std::vector<std::int64_t> row_slots_;  // each sentence's slot in rows_
  std::vector<std::int32_t> all_places_;          // 0, 1, 2 ...: all rows of a source
  std::vector<Buffer<float>> rows_;               // per layer: [slots, capacity * beams, 2 * dim]
  std::vector<std::int32_t> ancestors_, chosen_;  // [batch, beams, capacity]: the row of each step
  Buffer<float> scratch_;
  bool has_states_ = false;  // of the last step, for all remaining sentences
};

}  // namespace relakit::translate
