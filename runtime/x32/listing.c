#include "listing.h"
#include "diagnostics.h"
#include "table.h"

/* Of the translated calls, those of which a part goes through the i386 entry, and which part. */
static const struct {
    u16 number;
    const char *part;
} parts[] = {
    {78, "i386 entry on NFS, overlayfs, eCryptfs and Lustre, and after a seek on ext4"},
    {217, "i386 entry on NFS, overlayfs, eCryptfs and Lustre, and after a seek on ext4"},
    {514, "i386 entry for requests that are not known"},
    {541, "i386 entry for multicast filters, netfilter and SCTP"},
    {542, "i386 entry for multicast filters, netfilter and SCTP"},
};

static const char *part_of(u32 number) {
    for (u32 i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].number == number) {
            return parts[i].part;
        }
    }
    return "";
}

void listing_print(void) {
    struct text head = {.size = 0};
    text_add(&head, "| number | call | path | |\n| ---: | --- | --- | --- |\n");
    text_write(&head, 1);
    for (u32 number = 0; number < TABLE_SIZE; number++) {
        const struct row *row = table_row(number | X32_BIT);
        struct text line = {.size = 0};
        if (row->name == NULL) {
            u32 last = number;
            while (last + 1 < TABLE_SIZE && table_row((last + 1) | X32_BIT)->name == NULL) {
                last++;
            }
            text_add(&line, "| %u", (u64)number);
            if (last > number) {
                text_add(&line, " to %u", (u64)last);
            }
            text_add(&line, " | | refused | no call of x32 |\n");
            number = last;
        } else {
            const char *path = row->refused != NULL ? "refused"
                               : row->call != NULL  ? "translated"
                               : row->native != 0   ? "forwarded"
                                                    : "direct stub";
            const char *note = row->refused != NULL ? row->refused : part_of(number);
            text_add(&line, "| %u | %s | %s |", (u64)number, row->name, path);
            text_add(&line, *note != 0 ? " %s |\n" : "%s |\n", note);
        }
        text_write(&line, 1);
    }
    struct text end = {.size = 0};
    text_add(&end, "| %u and up | | refused | no call of x32 |\n", (u64)TABLE_SIZE);
    text_write(&end, 1);
}
