// An allocation-heavy program: trees of calls twenty deep, each of which fills lists, maps and strings, and looks things up
// in them. ROUNDS (the first word) times 25 trees; some 140 000 blocks each time. The second word: how many stay until
// the end.
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

struct Node {
    std::map<int, std::string> names;
    std::list<int> numbers;
    std::vector<std::unique_ptr<Node>> children;
};

static unsigned state = 1;
static unsigned next() {
    state = state * 1103515245u + 12345u;
    return state >> 8;
}

__attribute__((noinline)) static void fill(Node &node, int count) {
    for (int i = 0; i < count; i++) {
        node.numbers.push_back(i);
        node.names[int(next() % 1000)] = std::string(20 + next() % 40, 'x');
    }
}

__attribute__((noinline)) static long look_up(const Node &node, int times) {
    long sum = 0;
    for (int i = 0; i < times; i++) {
        auto found = node.names.lower_bound(int(next() % 1000));
        if (found != node.names.end()) {
            for (char letter : found->second) {
                sum += letter;
            }
        }
    }
    for (int number : node.numbers) {
        sum += number;
    }
    return sum;
}

__attribute__((noinline)) static long grow(Node &node, int depth, int width) {
    fill(node, 4);
    long sum = look_up(node, 60);
    for (int i = 0; depth > 0 && i < width; i++) {
        node.children.push_back(std::make_unique<Node>());
        sum += grow(*node.children.back(), depth - 1, i == 0 ? width : 1);
    }
    return sum;
}

int main(int count, char **words) {
    int rounds = count > 1 ? atoi(words[1]) : 10;
    size_t most = count > 2 ? atoi(words[2]) : 0;
    std::list<Node> kept;
    long sum = 0;
    for (int i = 0; i < rounds; i++) {
        for (int tree = 0; tree < 25; tree++) {
            if (kept.size() < most) {
                kept.emplace_back();
                sum += grow(kept.back(), 20, 3);
            } else {
                Node root;
                sum += grow(root, 20, 3);
            }
        }
    }
    printf("%ld\n", sum);
}
