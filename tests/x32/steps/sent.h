/* What the tracer sends, and answers the program with: which of these it has sent. */
enum { SEGV = 1, QUEUE = 2, SYS = 4 };
/* So many real-time signals are sent together. */
enum { QUEUED = 3 };
