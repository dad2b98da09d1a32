/*
 * Which sites have trapped, and how often those of their page have: what is worth being rewritten.
 *
 * The first rewriting of a page costs as much as eight to twelve traps, and a page of its own to the program;
 * much of what a program calls at its start is called once, and the dynamic linker of a small one ends below
 * that. The other sites of the page then cost next to nothing. In a page that is worth it each is rewritten
 * when it traps again: what a copy of the process calls once, and each copy anew, is not.
 */
#ifndef X32_SITE_TRAPS_H
#define X32_SITE_TRAPS_H

#include "texts.h"

enum trapped {
    TRAPPED_SELDOM,
    TRAPPED_OFTEN,    /* the site is to be rewritten now */
    TRAPPED_FOR_GOOD, /* its page was refused */
};

/* Counts one more, of any thread. */
enum trapped site_trapped(u32 call);
/* The page of the site cannot be written: sealed, of huge pages, or in a process without such rights (MDWE).
 * That is asked once, since it costs ten traps. */
void site_traps_refuse_page(u32 call);
/* Calls `visit` with each other site of the page that has trapped and is still known to. */
void site_traps_of_page(u32 call, void (*visit)(u32 other));
/* What is there will be other text. */
void site_traps_forget(struct range range);

#endif
