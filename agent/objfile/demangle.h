/* Converts mangled symbols to names of the source language. */
#ifndef SJ_AGENT_OBJFILE_DEMANGLE_H
#define SJ_AGENT_OBJFILE_DEMANGLE_H

#include <stddef.h>

enum { SJ_DEMANGLE_MAX_BYTES = 64 * 1024 };

/* Writes the source name of a C++, Rust (v0 and legacy) or D symbol to `output`. Writes the symbol
 * itself if it cannot be demangled. Keeps the prefix FILE! of an import's name. Truncates the text
 * to `capacity` - 1 bytes and ends it with a NUL. Thread-safe. */
void sj_demangle(const char *symbol, char *output, size_t capacity);

#endif
