/* Writes names for formats that demand valid UTF-8, or in which a line end ends a name. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_CLEAN_NAME_H
#define SJ_COLLECTOR_SERVER_EXPORT_CLEAN_NAME_H

#include <stdio.h>

/* Returns a copy of `name` with U+FFFD in place of each byte that is not UTF-8. The caller frees
 * the copy. Returns NULL if out of memory. */
char *sj_clean_name(const char *name);

/* Writes `name` with a space in place of each line feed and carriage return. */
void sj_write_in_line(FILE *output, const char *name);

#endif
