/* Design notes
 *
 * libiberty is the demangler of binutils and gdb: one library for C++, Rust and D. Symbols are
 * untrusted. Each reference back to a part of the name can double the text, so a symbol of a
 * hundred bytes can expand to a practically endless text. The C++ demangler passes its text to a
 * callback in pieces. The callback calls longjmp when the buffer is full. This is safe because this
 * path of libiberty does not allocate memory. The demanglers of Rust and D allocate, so symbols
 * with many letters that may be such references are not demangled. The recursion limit of libiberty
 * stays on. */
#include "agent/objfile/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_MANGLED = 8 * 1024, MOST_REFERENCES = 32 };

typedef struct name_buffer {
    char *text;
    size_t size, capacity; /* size without the NUL; capacity with it */
    jmp_buf full;
} name_buffer;

static void append_text(const char *text, size_t size, void *held)
{
    name_buffer *name = held;
    const size_t space = name->capacity - 1 - name->size;
    const size_t taken = size < space ? size : space;
    memcpy(name->text + name->size, text, taken);
    name->size += taken;
    name->text[name->size] = '\0';
    if (taken < size) {
        longjmp(name->full, 1);
    }
}

static bool demangle_cplusplus(const char *symbol, char *output, size_t capacity)
{
    name_buffer name = {.text = output, .capacity = capacity};
    if (setjmp(name.full) != 0) {
        return true; /* the text was cut */
    }
    return cplus_demangle_v3_callback(symbol, DMGL_PARAMS | DMGL_ANSI, append_text, &name) != 0;
}

/* Demangles a symbol of Rust (_R) or D (_D). Returns a text that the caller frees. Returns NULL if
 * libiberty cannot demangle it, or if too many of its letters may be references to earlier
 * parts. */
static char *demangle_rust_or_d(const char *symbol)
{
    const bool is_rust = symbol[1] == 'R';
    const char reference = is_rust ? 'B' : 'Q';
    int count = 0;
    for (const char *at = symbol; *at != '\0'; ++at) {
        count += *at == reference;
    }
    const int style = is_rust ? DMGL_RUST : DMGL_DLANG;
    return count <= MOST_REFERENCES ? cplus_demangle(symbol, style | DMGL_PARAMS | DMGL_ANSI)
                                    : NULL;
}

/* True if a symbol in the C++ format may be a legacy Rust symbol: it contains "17h" and 16
 * hexadecimal digits. */
static bool may_be_old_rust(const char *symbol)
{
    const char *hash = strstr(symbol, "17h");
    return hash != NULL && strlen(hash) >= 20 && strspn(hash + 3, "0123456789abcdef") >= 16;
}

void sj_demangle(const char *symbol, char *output, size_t capacity)
{
    /* The name of an import is FILE!SYMBOL. Mangled names do not contain '!'. */
    const char *mark = strrchr(symbol, '!');
    const int prefix = mark != NULL ? (int)(mark + 1 - symbol) : 0;
    const char *prefix_text = symbol;
    symbol += prefix;
    char *name = NULL;
    if (symbol[0] == '_' && strnlen(symbol, LONGEST_MANGLED) < LONGEST_MANGLED) {
        const bool is_rust_or_d = symbol[1] == 'R' || symbol[1] == 'D';
        if (is_rust_or_d) {
            name = demangle_rust_or_d(symbol);
            /* libiberty must not detect the language here: it would fall back to C++, for which
             * this path has no limit of the text. */
        } else if (may_be_old_rust(symbol)) {
            name = cplus_demangle(symbol, DMGL_RUST | DMGL_PARAMS | DMGL_ANSI);
        }
        if (!is_rust_or_d && name == NULL && (size_t)prefix < capacity) {
            snprintf(output, capacity, "%.*s", prefix, prefix_text);
            if (demangle_cplusplus(symbol, output + prefix, capacity - (size_t)prefix)) {
                return;
            }
        }
    }
    snprintf(output, capacity, "%.*s%s", prefix, prefix_text, name != NULL ? name : symbol);
    free(name);
}
