/* Shortens names of functions to a width. */
#ifndef SJ_COLLECTOR_SERVER_CLI_FUNCTION_NAME_H
#define SJ_COLLECTOR_SERVER_CLI_FUNCTION_NAME_H

#include <stddef.h>

enum { SJ_FUNCTION_NAME_BYTES = 1024 };

/* Writes `name` (UTF-8) in at most `columns` columns (0: unlimited) into `text`. Returns `text`. A
 * name that is too long loses parts in this order: first the arguments, which become "(…)"; then
 * the scopes before the method name, from the left; then the end of the method name. Control
 * characters and bytes that are not UTF-8 become '?' (sj_text_clean). Thread-safe. */
const char *sj_function_name_fit(const char *name, int columns, char text[SJ_FUNCTION_NAME_BYTES]);

#endif
