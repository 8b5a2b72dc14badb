/* Design notes
 *
 * libiberty is the demangler of binutils and gdb: one library for C++, Rust and D. Symbols come
 * from foreign files, so its recursion limit stays on and names beyond a length are left as they
 * are (demangling can grow a name exponentially). */
#include "agent/objfile/demangle.h"

#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_MANGLED = 8 * 1024 };

void sj_demangle(const char *symbol, char *output, size_t capacity)
{
    /* An import is FILE!SYMBOL, and no mangled name has a '!'. */
    const char *mark = strrchr(symbol, '!');
    const int prefix = mark != NULL ? (int)(mark + 1 - symbol) : 0;
    const char *prefix_text = symbol;
    symbol += prefix;
    char *name = NULL;
    if (symbol[0] == '_' && strnlen(symbol, LONGEST_MANGLED) < LONGEST_MANGLED) {
        name = cplus_demangle(symbol, DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI);
    }
    snprintf(output, capacity, "%.*s%s", prefix, prefix_text, name != NULL ? name : symbol);
    free(name);
}
