// Known parts: texts, beside an object on the stack that has their size and is constructed some lines later.
#include <cstdio>
#include <cstdlib>
#include <cstring>

constexpr int COUNT = 1000;

struct Table {
    long counts[5];
    Table(const char *text, size_t n);
};
__attribute__((noinline)) Table::Table(const char *text, size_t n) {
    for (size_t i = 0; i < 5; i++)
        counts[i] = text[i % n];
}

static const size_t text_size = sizeof(Table);
void *volatile kept[COUNT];
long total;

__attribute__((noinline)) static void add(int i) {
    void *text = malloc(text_size);

    memset(text, 'x', text_size);
    kept[i] = text;
    Table table(static_cast<const char *>(kept[i]), text_size);
    total += table.counts[i % 5];
}

int main() {
    for (int i = 0; i < COUNT; i++)
        add(i);
    printf("%ld\n", total);
}
