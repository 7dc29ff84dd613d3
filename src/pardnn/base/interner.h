// Interner: gives each distinct text a number, 0, 1, 2, … in order of first sight, and keeps it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace pardnn {

// Texts lie in blocks that never move, so a view of one lives as long as the interner.
class Interner {
 public:
  void reserve(std::size_t texts);
  std::uint32_t intern(std::string_view text);
  std::optional<std::uint32_t> find(std::string_view text) const;

  // The same in steps, for who looks many texts up: most of the time goes into waiting for memory,
  // and for several texts at once it is waited once.
  static std::uint32_t hash(std::string_view text);
  void fetch_slot(std::uint32_t hash) const;
  void fetch_text(std::uint32_t hash) const;  // when the slot is there
  std::optional<std::uint32_t> find(std::string_view text, std::uint32_t hash) const;
  std::uint32_t add(std::string_view text, std::uint32_t hash);  // a text that is not here yet
  std::string_view operator[](std::uint32_t number) const { return texts_[number]; }
  std::size_t size() const { return texts_.size(); }

 private:
  // Open addressing with linear probing. The hash beside the number spares most looks at texts.
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t number_plus_one = 0;  // 0: free
  };

  std::string_view keep(std::string_view text);
  void resize(std::size_t slots);

  std::vector<Slot> slots_;  // a power of two, at most three quarters in use
  std::vector<std::string_view> texts_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;
  std::size_t free_size_ = 0;
};

}  // namespace pardnn
