#include "pardnn/base/interner.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

namespace pardnn {
namespace {

constexpr std::size_t kBlockSize = std::size_t{1} << 16;

std::uint32_t hash_of(std::string_view text) {
  const std::uint64_t hash = std::hash<std::string_view>()(text);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

// The slot that holds the text, or the free one where it belongs.
std::size_t Interner::slot_of(std::string_view text, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].number_plus_one != 0 &&
         (slots_[at].hash != hash || texts_[slots_[at].number_plus_one - 1] != text)) {
    at = (at + 1) & mask;
  }
  return at;
}

std::uint32_t Interner::intern(std::string_view text) {
  if ((texts_.size() + 1) * 4 > slots_.size() * 3) {
    resize(slots_.empty() ? 16 : slots_.size() * 2);
  }
  const std::uint32_t hash = hash_of(text);
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.number_plus_one == 0) {
    texts_.push_back(keep(text));
    slot = {hash, static_cast<std::uint32_t>(texts_.size())};
  }
  return slot.number_plus_one - 1;
}

std::optional<std::uint32_t> Interner::find(std::string_view text) const {
  if (slots_.empty()) return std::nullopt;
  const Slot& slot = slots_[slot_of(text, hash_of(text))];
  if (slot.number_plus_one == 0) return std::nullopt;
  return slot.number_plus_one - 1;
}

std::string_view Interner::keep(std::string_view text) {
  if (text.size() > free_size_) {
    free_size_ = std::max(kBlockSize, text.size());
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(free_size_));
    free_ = blocks_.back().get();
  }
  if (!text.empty()) std::memcpy(free_, text.data(), text.size());
  const std::string_view kept(free_, text.size());
  free_ += text.size();
  free_size_ -= text.size();
  return kept;
}

void Interner::reserve(std::size_t texts) {
  texts_.reserve(texts);
  const std::size_t slots = std::bit_ceil(texts * 4 / 3 + 1);
  if (slots > slots_.size()) resize(slots);
}

void Interner::resize(std::size_t slots) {
  std::vector<Slot> old(slots);
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number_plus_one == 0) continue;
    std::size_t at = slot.hash & mask;
    while (slots_[at].number_plus_one != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

}  // namespace pardnn
