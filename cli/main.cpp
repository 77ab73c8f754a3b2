// The entry point of resourcectl; the program itself is in program.cpp.
#include "cli/program.hpp"

int main(int argc, char** argv) { return resourced::cli::program(argc, argv); }
