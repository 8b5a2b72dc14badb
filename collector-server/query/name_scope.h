/* Where a function belongs by its name: its class, and the namespace or package of that. Names are
 * those of `functions`: C++, Rust, Mono, Java, Objective-C. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_NAME_SCOPE_H
#define SJ_COLLECTOR_SERVER_QUERY_NAME_SCOPE_H

#include <stddef.h>

/* sj_name_class_bytes returns how many bytes of `*start`, which lies in `name`, are the class; 0:
 * it has none. A class has no template arguments cut off. */
size_t sj_name_class_bytes(const char *name, const char **start);

/* sj_name_namespace_bytes does so for the namespace of a class of `bytes`, which begins with it. */
size_t sj_name_namespace_bytes(const char *class_start, size_t bytes);

#endif
