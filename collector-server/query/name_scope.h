/* Finds the class of a function in its name, and the namespace or package of the class. The names
 * are in the form of the table `functions`: C++, Rust, Mono, Java, Objective-C. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_NAME_SCOPE_H
#define SJ_COLLECTOR_SERVER_QUERY_NAME_SCOPE_H

#include <stddef.h>

/* Returns the length of the class's name in `name`, with its namespace or package and its template
 * arguments. Writes the start of the class's name to `*start`. Returns 0 if there is no class. */
size_t sj_name_class_bytes(const char *name, const char **start);

/* Returns the length of the namespace or package at the start of a class's name, as
 * sj_name_class_bytes returns it. Returns 0 if there is none. */
size_t sj_name_namespace_bytes(const char *class_start, size_t bytes);

#endif
