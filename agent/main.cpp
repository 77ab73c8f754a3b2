// The program resource-agent. What it does is in program.cpp.
#include <iostream>

#include "agent/program.hpp"

int main(int argc, char** argv) { return resourced::agent::run(argc, argv, std::cout, std::cerr); }
