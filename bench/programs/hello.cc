// What a C++ program costs before it does anything: the loader, the C++ library, one line.
#include <iostream>

int main() { std::cout << "hello\n"; }
