/* One template, at one line, for int, long and size_t: types that differ in the width of an integer are not one. */
#include <cstddef>
#include <map>

template <class T> struct Node {
    T value;
    Node *left, *right;
};

template <class T> struct Tree {
    Node<T> *root = nullptr;
    __attribute__((noinline)) void add(T value) { root = new Node<T>{value, root, nullptr}; }
};

static Tree<int> of_int;
static Tree<long> of_long;
static Tree<std::size_t> of_size;
static std::map<int, int> ints;
static std::map<long, long> longs;

int main() {
    for (int i = 0; i < 2000; i++)
        of_int.add(i);
    for (int i = 0; i < 3000; i++)
        of_long.add(i);
    for (int i = 0; i < 500; i++)
        of_size.add(static_cast<std::size_t>(i));
    for (int i = 0; i < 1000; i++)
        ints[i] = i;
    for (int i = 0; i < 1000; i++)
        longs[i] = i;
    return 0;
}
