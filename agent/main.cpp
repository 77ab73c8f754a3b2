// The program resource-agent. What it does is in program.cpp.
#include <csignal>
#include <iostream>

#include "agent/program.hpp"

int main(int argc, char** argv) {
  // A reader of the log that goes away must not take the agent with it.
  std::signal(SIGPIPE, SIG_IGN);
  return resourced::agent::run(argc, argv, std::cout, std::cerr);
}
