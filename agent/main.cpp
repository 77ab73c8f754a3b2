// Main function of resource-agent; its work is in program.cpp.
#include <csignal>
#include <iostream>

#include "agent/program.hpp"

int main(int argc, char** argv) {
  // The agent must survive when the reader of its log closes the pipe.
  std::signal(SIGPIPE, SIG_IGN);
  return resourced::agent::run(argc, argv, std::cout, std::cerr);
}
