#include "yardstick.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include <sys/mman.h>

namespace resourced::e2e::loop_tests {
namespace {

/// A tree of cells from malloc(3), like a JSON document.
struct Cell {
  Cell* first = nullptr;
  Cell* next = nullptr;
};

Cell* make_cell() {
  void* const memory = std::malloc(sizeof(Cell));
  if (memory == nullptr) std::abort();
  return new (memory) Cell;
}

void free_cells(Cell* cell) {
  while (cell != nullptr) {
    Cell* const next = cell->next;
    free_cells(cell->first);
    std::free(cell);
    cell = next;
  }
}

}  // namespace

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

double yardstick() {
  constexpr std::size_t cells = 21845;
  constexpr std::size_t in_each = 4;
  constexpr int repetitions = 10;
  Milliseconds least = std::chrono::hours(1);
  for (int i = 0; i < repetitions; ++i) {
    const auto begun = Clock::now();
    Cell* root = nullptr;
    for (std::size_t made = 0; made < cells; made += in_each) {
      Cell* const outer = make_cell();
      for (std::size_t inner = 1; inner < in_each; ++inner) {
        Cell* const cell = make_cell();
        cell->next = outer->first;
        outer->first = cell;
      }
      outer->next = root;
      root = outer;
    }
    free_cells(root);
    least = std::min<Milliseconds>(least, Clock::now() - begun);
  }
  return least.count();
}

double yardstick_of_new_memory() {
  constexpr std::size_t size = std::size_t{2} << 20;
  constexpr int repetitions = 10;
  const std::vector<char> source(size, 'x');
  Milliseconds least = std::chrono::hours(1);
  for (int i = 0; i < repetitions; ++i) {
    const auto begun = Clock::now();
    void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    std::memcpy(memory, source.data(), size);
    ::munmap(memory, size);
    least = std::min<Milliseconds>(least, Clock::now() - begun);
  }
  return least.count();
}

}  // namespace resourced::e2e::loop_tests
