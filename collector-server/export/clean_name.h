/* Names for formats that demand valid UTF-8, or that end a name with the line. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_CLEAN_NAME_H
#define SJ_COLLECTOR_SERVER_EXPORT_CLEAN_NAME_H

#include <stdio.h>

/* Returns a copy of `name` in which each byte that is not UTF-8 is replaced by U+FFFD, or NULL if
 * there is no memory. The caller frees it. */
char *sj_clean_name(const char *name);

/* Writes `name` with a space in place of each line end. So a name cannot begin another line of the
 * format. */
void sj_write_in_line(FILE *output, const char *name);

#endif
