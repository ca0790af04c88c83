#include "translate/search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>

#include "translate/best_tokens.h"
#include "translate/buffers.h"
#include "translate/parallel_for.h"

namespace relakit::translate {

namespace {

constexpr std::int64_t kFirstCapacity = 32;  // in steps; doubled whenever they are used up

// For numbers from Python that are used as indices here.
void check_range(const char* what, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return;
  throw std::invalid_argument(std::string(what) + " is " + std::to_string(value) +
                              ", but must be from " + std::to_string(least) + " to " +
                              std::to_string(most));
}

bool are_finite(const std::vector<float>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); });
}

}  // namespace

Search::Search(std::shared_ptr<const Model> model, Memory memory, std::int64_t beams)
    : model_(std::move(model)),
      memory_(std::move(memory)),
      sublayers_(*model_),
      beams_(beams),
      sources_(memory_.starts.size() - 1),
      row_slots_(sources_.size()),
      rows_(model_->decoder.size()) {
  check_range("the number of beams", beams, 1, INT32_MAX);
  std::iota(sources_.begin(), sources_.end(), 0);
  std::iota(row_slots_.begin(), row_slots_.end(), 0);
  for (std::size_t i = 1; i < memory_.starts.size(); i++) {
    longest_source_ = std::max(longest_source_, memory_.starts[i] - memory_.starts[i - 1]);
  }
  all_places_.resize(as_index(longest_source_));
  std::iota(all_places_.begin(), all_places_.end(), 0);
}

// Make room for more steps of the remaining sentences.
void Search::grow() {
  const std::int64_t larger = capacity_ == 0 ? kFirstCapacity : 2 * capacity_;
  const std::int64_t width = 2 * model_->dim;
  for (auto& rows : rows_) {
    Buffer<float> moved(as_index(batch() * larger * beams_ * width));
    for (std::int64_t sentence = 0; sentence < batch(); sentence++) {
      const auto from = rows.begin() + row_slots_[as_index(sentence)] * capacity_ * beams_ * width;
      std::copy(from, from + steps_ * beams_ * width,
                moved.begin() + sentence * larger * beams_ * width);
    }
    rows = std::move(moved);
  }
  std::iota(row_slots_.begin(), row_slots_.end(), 0);
  std::vector<std::int32_t> moved(as_index(batch() * beams_ * larger));
  for (std::int64_t row = 0; row < batch() * beams_; row++) {
    const auto from = ancestors_.begin() + row * capacity_;
    std::copy(from, from + steps_, moved.begin() + row * larger);
  }
  ancestors_ = std::move(moved);
  chosen_.resize(ancestors_.size());
  capacity_ = larger;
}

void Search::attend_to_target(const Machine& machine, std::size_t number) {
  const AttentionLayer& layer = model_->decoder[number].target;
  const float* projected = sublayers_.project(machine, layer.input, layer.residual_norm);
  const std::int64_t dim = model_->dim, stride = whole_panels(3 * dim), width = 2 * dim;
  const std::int64_t room = 2 * (steps_ + kPanel);
  make_room(scratch_, batch() * room);
  parallel_for(batch(), machine.threads, kWorkPerThread / (beams_ * steps_ * width),
               [&](std::int64_t sentence) {
    float* rows =
        rows_[number].data() + row_slots_[as_index(sentence)] * capacity_ * beams_ * width;
    AttendCall call = attend_call(*model_, layer);
    call.rows = rows;
    call.row_stride = width;
    call.count = steps_;
    call.scratch = scratch_.data() + sentence * room;
    const std::int64_t first = sentence * distinct_beams();
    for (std::int64_t beam = 0; beam < distinct_beams(); beam++) {
      const float* joined = projected + (first + beam) * stride;
      std::copy(joined + dim, joined + 3 * dim, rows + ((steps_ - 1) * beams_ + beam) * width);
    }
    for (std::int64_t beam = 0; beam < distinct_beams(); beam++) {
      call.query = projected + (first + beam) * stride;
      call.places = ancestors_.data() + (sentence * beams_ + beam) * capacity_;
      call.output = sublayers_.mixed(first + beam);
      machine.kernels->attend(call);
    }
  });
  sublayers_.finish_attention(machine, layer);
}

void Search::attend_to_source(const Machine& machine, std::size_t number) {
  const AttentionLayer& layer = model_->decoder[number].source;
  const float* projected = sublayers_.project(machine, layer.input, layer.residual_norm);
  const std::int64_t room = 2 * (longest_source_ + kPanel);
  make_room(scratch_, batch() * room);
  parallel_for(batch(), machine.threads,
               kWorkPerThread / (beams_ * longest_source_ * memory_.stride),
               [&](std::int64_t sentence) {
    const std::int64_t* start = memory_.starts.data() + sources_[as_index(sentence)];
    AttendCall call = attend_call(*model_, layer);
    call.rows = memory_.rows[number].data() + start[0] * memory_.stride;
    call.row_stride = memory_.stride;
    call.places = all_places_.data();
    call.count = start[1] - start[0];
    call.scratch = scratch_.data() + sentence * room;
    const std::int64_t first = sentence * distinct_beams();
    for (std::int64_t row = first; row < first + distinct_beams(); row++) {
      call.query = projected + row * sublayers_.stride();
      call.output = sublayers_.mixed(row);
      machine.kernels->attend(call);
    }
  });
  sublayers_.finish_attention(machine, layer);
}

void Search::step(const Machine& machine, const std::int64_t* tokens, const float* position) {
  if (batch() == 0) return;
  check_packed_for(machine, *model_->output);
  check_tokens(tokens);
  has_states_ = false;
  if (steps_ == capacity_) grow();
  steps_++;
  const std::int64_t distinct = distinct_beams(), rows = batch() * distinct;
  std::vector<std::int64_t> read(as_index(rows));
  for (std::int64_t sentence = 0; sentence < batch(); sentence++) {
    for (std::int64_t beam = 0; beam < beams_; beam++) {
      const std::int64_t row = sentence * beams_ + beam, alike = beam % distinct;
      ancestors_[as_index(row * capacity_ + steps_ - 1)] =
          static_cast<std::int32_t>((steps_ - 1) * beams_ + alike);
      read[as_index(sentence * distinct + alike)] = tokens[row];
    }
  }
  const std::vector<const float*> positions(as_index(rows), position);
  sublayers_.embed(machine, model_->target_embeddings, read.data(), positions.data(), rows);
  for (std::size_t number = 0; number < model_->decoder.size(); number++) {
    attend_to_target(machine, number);
    attend_to_source(machine, number);
    sublayers_.feed_forward(machine, model_->decoder[number].feed_forward);
  }
  sublayers_.normalise_last(machine, model_->decoder_norm);
  has_states_ = true;
}

// Called before a step changes anything. Tokens must be in the vocabulary, and the beams of a
// sentence must start with the same token.
void Search::check_tokens(const std::int64_t* tokens) const {
  for (std::int64_t row = 0; row < batch() * beams_; row++) {
    check_token(tokens[row], model_->output->outputs());
    const std::int64_t sentence = row / beams_, first = tokens[sentence * beams_];
    if (steps_ == 0 && tokens[row] != first) {
      throw std::invalid_argument("the beams of sentence " + std::to_string(sentence + 1) +
                                  " begin with tokens " + std::to_string(first) + " and " +
                                  std::to_string(tokens[row]));
    }
  }
}

void Search::check_states() const {
  if (!has_states_) throw std::logic_error("a search has results right after a step only");
}

void Search::copy_states(float* states) const {
  if (batch() == 0) return;
  check_states();
  const std::int64_t distinct = distinct_beams();
  for (std::int64_t row = 0; row < batch() * beams_; row++) {
    const std::int64_t alike = row / beams_ * distinct + row % beams_ % distinct;
    const float* x = sublayers_.x() + alike * sublayers_.stride();
    std::copy(x, x + model_->dim, states + row * model_->dim);
  }
}

bool Search::choose(const Machine& machine, const Choice& choice, const float* scores,
                    const Candidates& best) {
  if (batch() == 0) return true;
  check_states();
  const PackedLinear& output = *model_->output;
  check_packed_for(machine, output);
  check_range("the number of candidates", choice.count, 1, INT32_MAX);
  const LinearCall call =
      sublayers_.prepare(machine, output, sublayers_.x(), sublayers_.stride());
  if (!shortlists_.empty()) {
    std::atomic<bool> is_finite{true};
    parallel_for(batch(), machine.threads, 1, [&](std::int64_t sentence) {
      if (!choose_from_list(machine, call, sentence, choice, scores, best)) is_finite = false;
    });
    return is_finite;
  }
  BestTokens found(choice, call.rows, output.panels(), machine.threads);
  found.look(machine, call);
  const std::vector<float> normalisers = found.log_normalisers();
  for (std::int64_t sentence = 0; sentence < batch(); sentence++) {
    found.merge(sentence, distinct_beams(), scores + sentence * beams_, normalisers, best);
  }
  return are_finite(normalisers);
}

void Search::allow(const Machine& machine, const std::vector<std::vector<std::int64_t>>& lists) {
  const std::int64_t vocabulary = model_->output->outputs();
  if (lists.size() != sources_.size()) throw std::invalid_argument("each sentence needs a list");
  for (const auto& list : lists) {
    if (list.empty()) throw std::invalid_argument("a list must have the end token");
    for (const std::int64_t token : list) check_token(token, vocabulary);
  }
  shortlists_.resize(memory_.starts.size() - 1);  // also of sentences that are no longer kept
  parallel_for(batch(), machine.threads, 1, [&](std::int64_t sentence) {
    const auto& tokens = lists[as_index(sentence)];
    shortlists_[as_index(sources_[as_index(sentence)])] = std::make_shared<const Shortlist>(
        Shortlist{tokens, PackedLinear(*model_->output, tokens, -INFINITY)});
  });
}

// `choose` for one sentence: its beams, and only the outputs in its own list.
bool Search::choose_from_list(const Machine& machine, const LinearCall& all,
                              std::int64_t sentence, const Choice& choice, const float* scores,
                              const Candidates& best) const {
  const Shortlist& list = *shortlists_[as_index(sources_[as_index(sentence)])];
  const std::int64_t distinct = distinct_beams();
  const LinearCall rows = some_rows(all, sentence * distinct, distinct);
  LinearCall call = list.output.call();
  call.rows = rows.rows;
  call.x = rows.x;
  call.x_stride = rows.x_stride;
  call.byte_x = rows.byte_x;
  call.x_scales = rows.x_scales;
  Choice place;  // the same choice, among places in the list
  place.count = choice.count;
  place.must_end = choice.must_end == nullptr ? nullptr : choice.must_end + sentence;
  for (std::size_t i = 0; i < list.tokens.size(); i++) {
    if (std::count(choice.forbidden.begin(), choice.forbidden.end(), list.tokens[i]) != 0) {
      place.forbidden.push_back(static_cast<std::int64_t>(i));
    }
  }
  const Machine alone{machine.kernels, machine.norm_kernels, 1};
  BestTokens found(place, distinct, list.output.panels(), 1);
  found.look(alone, call);
  const std::vector<float> normalisers = found.log_normalisers();
  const std::int64_t first = sentence * choice.count;
  found.merge(0, distinct, scores + sentence * beams_, normalisers,
              {best.scores + first, best.beams + first, best.tokens + first});
  for (std::int64_t i = first; i < first + choice.count; i++) {
    best.tokens[i] = list.tokens[as_index(best.tokens[i])];
  }
  return are_finite(normalisers);
}

void Search::reorder(const std::int64_t* parents) {
  for (std::int64_t row = 0; row < batch() * beams_; row++) {
    check_range("a parent", parents[row], 0, beams_ - 1);
    const std::int64_t parent = row / beams_ * beams_ + parents[row];
    const auto from = ancestors_.begin() + parent * capacity_;
    std::copy(from, from + steps_, chosen_.begin() + row * capacity_);
  }
  std::swap(ancestors_, chosen_);
}

void Search::keep(const std::vector<std::int64_t>& sentences) {
  std::int64_t next = 0;  // places must ascend: nothing may be overwritten before it is moved
  for (const std::int64_t sentence : sentences) {
    check_range("a sentence's place", sentence, next, batch() - 1);
    next = sentence + 1;
  }
  has_states_ = false;
  for (std::size_t i = 0; i < sentences.size(); i++) {
    sources_[i] = sources_[as_index(sentences[i])];
    row_slots_[i] = row_slots_[as_index(sentences[i])];
    const auto from = ancestors_.begin() + sentences[i] * beams_ * capacity_;
    std::copy(from, from + beams_ * capacity_,
              ancestors_.begin() + static_cast<std::int64_t>(i) * beams_ * capacity_);
  }
  sources_.resize(sentences.size());
  row_slots_.resize(sentences.size());
}

}  // namespace relakit::translate
