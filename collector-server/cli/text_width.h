/* How wide UTF-8 text is on a terminal. */
#ifndef SJ_COLLECTOR_SERVER_CLI_TEXT_WIDTH_H
#define SJ_COLLECTOR_SERVER_CLI_TEXT_WIDTH_H

#include <stddef.h>

/* sj_text_width counts the columns that UTF-8 text takes on a terminal; bad bytes count one. */
int sj_text_width(const char *text);

/* sj_text_cut returns how many bytes of `text` take at most `width` columns. */
size_t sj_text_cut(const char *text, int width);

#endif
