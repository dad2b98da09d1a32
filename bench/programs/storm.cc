// Pointers and little else: a std::map that numbers (as many as argument 1 says, of a million different ones) are counted in.
#include <cstdio>
#include <cstdlib>
#include <map>

int main(int argc, char **argv) {
    std::map<int, int> seen;
    unsigned long long x = 1;
    for (long times = argc > 1 ? atol(argv[1]) : 0; times > 0; times--) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        seen[static_cast<int>((x >> 33) % 1000000)]++;
    }
    unsigned long long sum = 0;
    for (const auto &one : seen)
        sum += static_cast<unsigned long long>(one.first) * static_cast<unsigned>(one.second);
    printf("%llu\n", sum);
}
