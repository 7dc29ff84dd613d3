// Books: the memory of every device over time while units are moved, without simulating again.
//
// Made from one simulated schedule, they keep its starts and finishes and work out anew the life of
// just those buffers that a move touches: O(degree * log ops) per move. What the books say is a
// forecast; the simulator has the last word.
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

  // Units that free bytes of `device` at `moment` when they leave together, ascending. A buffer
  // goes with the units of its remaining readers there, eight at most, or, where none remain, with
  // its maker's.
  struct Leaving {
    std::vector<UnitId> units;  // ascending
    std::int64_t bytes = 0;
  };
  std::vector<Leaving> freeable(DeviceId device, std::size_t moment) const;

  // What the unit would still have room for on `device` while it is alive there; below 0: it would
  // not even fit with nothing added.
  std::int64_t room_bytes(UnitId unit, DeviceId device) const;

 private:
  struct Span {
    std::int64_t begin_ns = 0, end_ns = 0;
  };
  struct Sent {
    DeviceId to;
    std::int64_t start_ns, arrival_ns;
  };
  struct Place {  // of one buffer: its first tensor there, and the device
    TensorId tensor;
    DeviceId device;
    auto operator<=>(const Place&) const = default;
  };

  void note_transfers(const Timeline& timeline);
  void note_take_overs(const std::vector<Buffer>& lifetimes);
  void choose_moments(const Timeline& timeline);
  void enter_everything();

  DeviceId home(OpId op) const { return placement_[*problem_.unit(op)]; }
  DeviceId home(TensorId tensor) const { return home(problem_.graph().tensor(tensor).producer); }
  // The input whose buffer the output lives in, where it has none of its own.
  std::optional<std::uint32_t> shared_input(TensorId tensor) const;
  // First tensor of the buffer that holds `tensor` on `device`; nothing for variables and `every`.
  std::optional<TensorId> root(TensorId tensor, DeviceId device) const;
  Sent sent(TensorId tensor, DeviceId to) const;
  // Life of the buffer with this first tensor; nothing when it is not there.
  std::optional<Span> life(Place place) const;
  template <class VisitReader, class VisitTensor>
  void walk(Place place, VisitReader visit_reader, VisitTensor visit_tensor) const;
  std::vector<UnitId> holders(Place place, std::size_t moment) const;
  std::vector<Place> touched(UnitId unit, DeviceId a, DeviceId b) const;
  void enter(Place place, int sign);
  void enter_unit(UnitId unit, DeviceId device, int sign);
  void add(DeviceId device, Span span, std::int64_t bytes);
  std::pair<std::size_t, std::size_t> range(Span span) const;

  const Problem& problem_;
  const Times& times_;
  UnitPlacement placement_;
  Table<OpId, std::int64_t> start_ns_, finish_ns_;
  std::int64_t step_ns_ = 0;
  std::vector<std::int64_t> moments_;
  Lists<TensorId, Sent> sent_;
  Table<TensorId, char> took_over_;
  std::unordered_map<std::uint64_t, std::uint32_t> every_readers_;  // by origin and device
  Table<DeviceId, Profile> profiles_;
  Table<DeviceId, std::int64_t> limit_bytes_;
};

}  // namespace pardnn
