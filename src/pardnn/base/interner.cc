#include "pardnn/base/interner.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

namespace pardnn {
namespace {

constexpr std::size_t kBlockSize = std::size_t{1} << 16;

}  // namespace

std::uint32_t Interner::hash(std::string_view text) {
  const std::uint64_t hash = std::hash<std::string_view>()(text);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

void Interner::fetch_slot(std::uint32_t hash) const {
  if (!slots_.empty()) __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
}

void Interner::fetch_text(std::uint32_t hash) const {
  if (slots_.empty()) return;
  const Slot& slot = slots_[hash & (slots_.size() - 1)];
  if (slot.number_plus_one != 0) __builtin_prefetch(&texts_[slot.number_plus_one - 1]);
}

std::uint32_t Interner::intern(std::string_view text) {
  const std::uint32_t its_hash = hash(text);
  const auto known = find(text, its_hash);
  return known ? *known : add(text, its_hash);
}

std::uint32_t Interner::add(std::string_view text, std::uint32_t hash) {
  if ((texts_.size() + 1) * 4 > slots_.size() * 3) {
    resize(slots_.empty() ? 16 : slots_.size() * 2);
  }
  std::size_t at = hash & (slots_.size() - 1);
  while (slots_[at].number_plus_one != 0) at = (at + 1) & (slots_.size() - 1);
  texts_.push_back(keep(text));
  slots_[at] = {hash, static_cast<std::uint32_t>(texts_.size())};
  return slots_[at].number_plus_one - 1;
}

std::optional<std::uint32_t> Interner::find(std::string_view text) const {
  return find(text, hash(text));
}

std::optional<std::uint32_t> Interner::find(std::string_view text, std::uint32_t hash) const {
  if (slots_.empty()) return std::nullopt;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask; slots_[at].number_plus_one != 0; at = (at + 1) & mask) {
    const std::uint32_t number = slots_[at].number_plus_one - 1;
    if (slots_[at].hash == hash && texts_[number] == text) return number;
  }
  return std::nullopt;
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
