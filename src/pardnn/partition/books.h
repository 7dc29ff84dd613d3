// Books: the memory of every device over time while units are moved, without simulating again.
//
// Made from one simulated schedule, they keep its starts and finishes and the life of every buffer.
// A move works out anew the lives of just those buffers that it touches: O(degree * log ops); it is
// undone by putting the old ones back. What the books say is a forecast; the simulator has the last
// word.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pardnn/problem/problem.h"
#include "pardnn/plan/plan.h"
#include "pardnn/partition/profile.h"
#include "pardnn/partition/times.h"
#include "pardnn/sim/simulate.h"

namespace pardnn {

class Books {
 public:
  // `lifetimes` belong to `timeline`; from them it is known which buffers were taken over.
  Books(const Problem& problem, const Times& times, UnitPlacement placement,
        const Timeline& timeline, const std::vector<Buffer>& lifetimes);

  const UnitPlacement& placement() const { return placement_; }
  const Profile& profile(DeviceId device) const { return profiles_[device]; }
  std::int64_t overflow_bytes(DeviceId device) const;  // of its fullest moment, at least 0
  // The problem's, less what was set aside for what the books do not know.
  std::int64_t limit_bytes(DeviceId device) const { return limit_bytes_[device]; }
  void set_aside(DeviceId device, std::int64_t bytes) { limit_bytes_[device] -= bytes; }
  std::size_t moment_count() const { return moments_.size(); }
  std::int64_t time_ns(std::size_t moment) const { return moments_[moment]; }

  void move(UnitId unit, DeviceId to);
  // Moves can be undone back to any mark that was not forgotten.
  struct Mark {
    std::size_t places = 0, lives = 0;
  };
  Mark mark() const { return {places_before_.size(), lives_before_.size()}; }
  void undo(Mark mark);
  void forget_marks();
  // Buffers whose lives were worked out so far, and buffers and ops gone through for `freeable`.
  std::size_t work() const { return work_; }

  // Units that free bytes of `device` at `moment` when they leave together, ascending. A buffer
  // goes with the units of its remaining readers there, eight at most, or, where none remain, with
  // its maker's.
  struct Leaving {
    std::vector<UnitId> units;  // ascending
    std::int64_t bytes = 0;
  };
  std::vector<Leaving> freeable(DeviceId device, std::size_t moment) const;

  struct Span {  // of moments, half-open; empty: not there
    std::uint32_t begin = 0, end = 0;
    bool operator==(const Span&) const = default;
  };
  // From its first start to the last moment at which something holds what it makes where it is.
  Span alive(UnitId unit) const;
  // What there would still be room for on `device` all that while; below 0: it is too full already.
  std::int64_t room_bytes(DeviceId device, Span span) const {
    return limit_bytes_[device] - profiles_[device].most(span.begin, span.end);
  }

 private:
  struct Sent {
    DeviceId to;
    std::uint32_t begin, end;  // the start, and the first moment at which it has arrived
  };
  struct Place {  // of one buffer: its first tensor there, and the device
    TensorId tensor;
    DeviceId device;
    auto operator<=>(const Place&) const = default;
  };
  struct Before {
    Place place;
    Span span;
  };

  void choose_moments(const Timeline& timeline);
  void note_transfers(const Timeline& timeline);
  void note_shared_inputs(const std::vector<Buffer>& lifetimes);
  void enter_everything();

  // The moment at or before this time, and the first one that is not before it.
  std::uint32_t moment_before(std::int64_t time_ns) const;
  std::uint32_t moment_after(std::int64_t time_ns) const;
  DeviceId home(OpId op) const { return device_[op]; }
  DeviceId home(TensorId tensor) const { return device_[producer_[tensor]]; }
  std::size_t slot(Place place) const {
    return index(place.tensor) * limit_bytes_.size() + index(place.device);
  }
  // First tensor of the buffer that holds `tensor` on `device`; nothing for variables and `every`.
  std::optional<TensorId> root(TensorId tensor, DeviceId device) const;
  Sent sent(TensorId tensor, DeviceId to) const;
  // Life of the buffer with this first tensor; empty when it is not there.
  Span life(Place place) const;
  template <class VisitReader, class VisitTensor>
  void walk(Place place, VisitReader visit_reader, VisitTensor visit_tensor) const;
  std::vector<UnitId> holders(Place place, std::size_t moment) const;
  void note_touched(UnitId unit, DeviceId a, DeviceId b);
  void set_life(Place place, Span span);
  void put(UnitId unit, DeviceId device, int sign);

  const Problem& problem_;
  const Times& times_;
  UnitPlacement placement_;
  Table<OpId, std::int64_t> finish_ns_;
  std::vector<std::int64_t> moments_;
  Span step_;
  Table<OpId, DeviceId> device_;
  Table<OpId, Span> runs_;
  Table<TensorId, OpId> producer_;
  Lists<TensorId, Sent> sent_;
  // The input whose buffer the output lives in, where it has none of its own.
  Table<TensorId, std::optional<std::uint32_t>> shared_input_;
  Table<OpId, char> shares_;  // some output of it does
  std::vector<Span> lives_;   // tensors x devices; of first tensors
  std::unordered_map<std::uint64_t, std::uint32_t> every_readers_;  // by origin and device
  Table<DeviceId, Profile> profiles_;
  Table<DeviceId, std::int64_t> limit_bytes_;
  std::vector<Place> touched_;
  std::vector<Before> lives_before_;                        // of what moved since
  std::vector<std::pair<UnitId, DeviceId>> places_before_;  // marks were forgotten
  mutable std::size_t work_ = 0;
};

}  // namespace pardnn
