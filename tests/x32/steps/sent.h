/* What the tracer sends, and answers the program with: which of these it has sent, and whether the program
 * was STOPPED then. */
enum { SEGV = 1, QUEUE = 2, SYS = 4, WINCH = 8, TSTP = 16, STOPPED = 32 };
/* So many real-time signals are sent together. */
enum { QUEUED = 3 };
