/* Names as people read them. */
#ifndef SJ_AGENT_OBJFILE_DEMANGLE_H
#define SJ_AGENT_OBJFILE_DEMANGLE_H

#include <stddef.h>

enum { SJ_DEMANGLE_MAX_BYTES = 64 * 1024 };

/* sj_demangle writes the source name of a C++, Rust (v0 and legacy) or D symbol into `output`, cut
 * to `capacity` - 1 bytes, or the symbol itself when it is not mangled. Thread-safe. */
void sj_demangle(const char *symbol, char *output, size_t capacity);

#endif
