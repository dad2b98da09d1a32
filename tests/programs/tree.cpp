// A program whose memory is pointers, for the heap's sites: NODES (1000, or the first word) nodes of a list, of a map and
// of its own kind, by lines that a test looks for.
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>

struct Own {
    Own *left, *right;
    int value;
};

static Own *grow(int value) {
    Own *own = new Own; // OWN
    own->left = own->right = nullptr;
    own->value = value;
    return own;
}

int main(int count, char **words) {
    int nodes = count > 1 ? atoi(words[1]) : 1000;
    std::list<int> list;
    std::map<int, int> map;
    Own *last = nullptr;
    for (int i = 0; i < nodes; i++) {
        list.push_back(i); // LIST
        map[i] = i;        // MAP
        Own *own = grow(i);
        own->left = last;
        last = own;
    }
    long long sum = 0; // the same in every ABI
    for (int value : list) {
        sum += value + map[value];
    }
    while (last != nullptr) {
        Own *own = last;
        sum += own->value;
        last = own->left;
        delete own;
    }
    printf("%lld\n", sum);
    return 0;
}
