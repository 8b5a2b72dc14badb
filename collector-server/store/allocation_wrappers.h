/* Recognizes functions that only wrap the allocator. */
#ifndef SJ_COLLECTOR_SERVER_STORE_ALLOCATION_WRAPPERS_H
#define SJ_COLLECTOR_SERVER_STORE_ALLOCATION_WRAPPERS_H

#include <stdbool.h>

/* True if `name`, a demangled name, is a function that allocates or frees memory for its caller.
 * Examples: xmalloc, g_free, PyMem_Malloc, operator new, and functions of C++ and Rust libraries
 * for containers and smart pointers. Such a function does not say where a mistake was made.
 * Thread-safe. */
bool sj_is_allocation_wrapper(const char *name);

#endif
