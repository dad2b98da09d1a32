// Known parts: blocks whose bytes alone fit several types. One line allocates three types, and a block has a header and
// characters behind it, so that 700 blocks together, and not each of them, are a multiple of the header.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

struct Node {
    Node *left, *right;
    long value;
    char color;
};
struct Wide {
    double numbers[8];
    void *next;
};
struct Text {
    std::size_t length;
    char characters[8];
};

Node *nodes;
Wide *wides;
int **pointers;
Text *texts[700];
std::string *names;
Node *others;

__attribute__((noinline)) void of_one_line() {
    nodes = new Node[1234]; wides = new Wide[321]; int **made = static_cast<int **>(std::calloc(777, sizeof(int *)));
    pointers = made;
}

__attribute__((noinline)) void with_characters() {
    for (Text *&text : texts) {
        text = static_cast<Text *>(std::malloc(sizeof(Text) + 92));
        text->length = 100;
    }
}

// Their bytes fit each other's types, with or without the length that an array of strings stores first.
__attribute__((noinline)) void of_another_line() {
    others = new Node[1234]; names = new std::string[321]; int **made = static_cast<int **>(std::calloc(777, sizeof(int *)));
    made[0] = pointers[0];
}

int main() {
    of_one_line();
    of_another_line();
    with_characters();
    pointers[0] = reinterpret_cast<int *>(nodes);
    pointers[1] = reinterpret_cast<int *>(wides);
    return std::printf("%zu\n", texts[699]->length) < 0;
}
