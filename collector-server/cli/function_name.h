/* Names of functions in a given width: what distinguishes functions is cut last. */
#ifndef SJ_COLLECTOR_SERVER_CLI_FUNCTION_NAME_H
#define SJ_COLLECTOR_SERVER_CLI_FUNCTION_NAME_H

#include <stddef.h>

enum { SJ_FUNCTION_NAME_BYTES = 1024 };

/* sj_function_name_fit writes `name` (UTF-8) in at most `columns` columns (0: any) into `text` and
 * returns `text`. What does not fit goes in this order: the arguments, become "(…)"; the scopes
 * before the method name, from the left; the end of the method name. Control characters and
 * bytes that are not UTF-8 become '?' (sj_text_clean). Thread-safe. */
const char *sj_function_name_fit(const char *name, int columns, char text[SJ_FUNCTION_NAME_BYTES]);

#endif
