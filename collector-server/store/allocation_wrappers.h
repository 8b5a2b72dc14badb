/* Functions that only wrap the allocator. */
#ifndef SJ_COLLECTOR_SERVER_STORE_ALLOCATION_WRAPPERS_H
#define SJ_COLLECTOR_SERVER_STORE_ALLOCATION_WRAPPERS_H

#include <stdbool.h>

/* sj_is_allocation_wrapper is true if `name`, demangled, is a function that gets or gives back
 * memory for its caller: xmalloc, g_free, PyMem_Malloc, operator new, and what the libraries of C++
 * and Rust have in the program for containers and smart pointers. Such a function does not say
 * where a mistake was made. Any thread. */
bool sj_is_allocation_wrapper(const char *name);

#endif
