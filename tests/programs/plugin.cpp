// A plugin in C++ for a program in C (plugins.c): plugin_work() asks for three blocks a turn by operators and gives all back;
// every tenth turn throws and catches, which asks for one more.
#include <new>
#include <stdexcept>

static void *volatile kept;

__attribute__((noinline)) static void refuse(long turn) {
    if (turn % 10 == 0) {
        throw turn;
    }
}

extern "C" long plugin_work(long turns) {
    long caught = 0;
    for (long turn = 0; turn < turns; turn++) {
        int *one = new int(1);
        char *many = new char[100 + turn % 100];
        void *plain = ::operator new(48, std::nothrow);
        kept = plain;
        kept = many;
        kept = one;
        try {
            refuse(turn);
        } catch (long) {
            caught++;
        }
        ::operator delete(plain, std::nothrow);
        delete[] many;
        delete one;
    }
    return caught;
}
