/* How many words of this program's width fit into so many bytes. */
unsigned long words(unsigned long bytes);
