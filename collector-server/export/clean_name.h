/* Names for formats that demand valid UTF-8. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_CLEAN_NAME_H
#define SJ_COLLECTOR_SERVER_EXPORT_CLEAN_NAME_H

/* Returns a copy of `name` in which each byte that is not UTF-8 is replaced by U+FFFD, or NULL if
 * there is no memory. The caller frees it. */
char *sj_clean_name(const char *name);

#endif
