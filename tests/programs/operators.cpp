// Known truth for the heap recorder: every operator new and delete, by sizes that say which it was. What has `left` in its
// name is not given back: 8 blocks of 3000 and 1 to 8 bytes, 24036 in all. 8 more blocks, of 4000 and 1 to 8, are.
#include <cstddef>
#include <new>

int main() {
    const auto aligned = std::align_val_t(128);
    volatile char *left[8] = {
        (char *)::operator new(3001),
        (char *)::operator new[](3002),
        (char *)::operator new(3003, std::nothrow),
        (char *)::operator new[](3004, std::nothrow),
        (char *)::operator new(3005, aligned),
        (char *)::operator new[](3006, aligned),
        (char *)::operator new(3007, aligned, std::nothrow),
        (char *)::operator new[](3008, aligned, std::nothrow),
    };
    void *volatile gone[8] = {
        ::operator new(4001),          ::operator new[](4002),          ::operator new(4003),
        ::operator new[](4004),        ::operator new(4005, aligned),   ::operator new[](4006, aligned),
        ::operator new(4007, aligned), ::operator new[](4008, aligned),
    };
    ::operator delete(gone[0]);
    ::operator delete[](gone[1]);
    ::operator delete(gone[2], std::size_t(4003));
    ::operator delete[](gone[3], std::nothrow);
    ::operator delete(gone[4], aligned);
    ::operator delete[](gone[5], aligned);
    ::operator delete(gone[6], std::size_t(4007), aligned);
    ::operator delete[](gone[7], aligned, std::nothrow);
    for (auto block : left) {
        if (block == nullptr || ((std::size_t)left[4] & 127) != 0) {
            return 1;
        }
    }
    bool thrown = false;
    try {
        left[0] = (char *)::operator new((std::size_t)-1 - 8192);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    // It goes on recording after an exception has gone through it.
    void *volatile after = ::operator new(5000);
    ::operator delete(after);
    return thrown ? 0 : 2;
}
