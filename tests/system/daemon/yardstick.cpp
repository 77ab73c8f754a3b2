#include "yardstick.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace resourced::e2e::loop_tests {
namespace {

/// A tree of cells from malloc(3), as a document of JSON is one.
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

double yardstick() {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t cells = 21845;
  constexpr std::size_t in_each = 4;
  constexpr int repetitions = 50;
  std::chrono::duration<double, std::milli> least = std::chrono::hours(1);
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
    least = std::min<std::chrono::duration<double, std::milli>>(least, Clock::now() - begun);
  }
  return least.count();
}

}  // namespace resourced::e2e::loop_tests
