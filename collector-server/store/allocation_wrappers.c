/* Design notes. The name of a C wrapper is an allocator's word with a general prefix, which does
 * not say what is allocated. So `xfree` is a wrapper and `image_free` is not. Case, underscores and
 * trailing digits do not count. */
#include "collector-server/store/allocation_wrappers.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

enum { WORD_BYTES = 48 };

static const char *const words[] = {
    "malloc",   "calloc",    "realloc",      "reallocarray",  "reallocf", "recalloc",
    "free",     "strdup",    "strndup",      "memdup",        "zalloc",   "memalign",
    "alloc",    "dealloc",   "alignedalloc", "alignedmalloc", "mallocn",  "reallocn",
    "mallocz",  "reallocz",  "vasprintf",    "posixmemalign", "asprintf", "freep",
    "allocate", "deallocate"};

static const char *const prefixes[] = {
    "",       "x",       "e",        "s",       "z",       "p",       "g",           "k",
    "my",     "ck",      "safe",     "checked", "must",    "try",     "util",        "utils",
    "mem",    "memory",  "sys",      "os",      "raw",     "do",      "gslice",      "gtry",
    "gpr",    "pymem",   "pymemraw", "je",      "tc",      "mi",      "pyobject",    "openssl",
    "crypto", "apr",     "av",       "ngx",     "zend",    "safesys", "perlsafesys", "ap",
    "xml",    "sqlite3", "heap",     "wrap",    "wrapped", "debug",   "dbg",         "default",
    "std",    "c",       "libc",     "tracked", "counted", "real",    "nofail",      "xx",
    "fatal",  "lib",     "internal", "generic", "custom"};

/* Prefixes of C++ and Rust library functions. A name may have a return type before the prefix. */
static const char *const libraries[] = {"std::",   "__gnu_cxx::", "operator new", "operator delete",
                                        "alloc::", "core::",      "<alloc::",     "<core::",
                                        "<std::",  "__rust_",     "__rdl_",       "__rg_"};

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Returns the start of a function's own name in a demangled name: templates have their return type
 * before it. */
static const char *behind_result(const char *name)
{
    const char *begin = name;
    int depth = 0;
    for (const char *at = name; *at != '\0' && *at != '('; at++) {
        depth += (*at == '<') - (*at == '>');
        if (*at == ' ' && depth == 0) {
            if (begins_with(begin, "operator")) {
                return begin;
            }
            begin = at + 1;
        }
    }
    return begin;
}

static bool is_of_library(const char *name)
{
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        if (begins_with(name, libraries[i])) {
            return true;
        }
    }
    return false;
}

/* Writes the letters of a C name in lower case, without trailing digits. Returns false if the name
 * is not a C name or is too long. */
static bool plain_letters(const char *name, char letters[WORD_BYTES])
{
    size_t count = 0;
    for (; *name != '\0'; name++) {
        if ((!isalnum((unsigned char)*name) && *name != '_') || count + 1 == WORD_BYTES) {
            return false;
        }
        if (*name != '_') {
            letters[count++] = (char)tolower((unsigned char)*name);
        }
    }
    while (count != 0 && isdigit((unsigned char)letters[count - 1])) {
        count--;
    }
    letters[count] = '\0';
    return count != 0;
}

static bool is_general(const char *prefix, size_t bytes)
{
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (strlen(prefixes[i]) == bytes && memcmp(prefixes[i], prefix, bytes) == 0) {
            return true;
        }
    }
    return false;
}

bool sj_is_allocation_wrapper(const char *name)
{
    char letters[WORD_BYTES];
    if (is_of_library(behind_result(name))) {
        return true;
    }
    if (!plain_letters(name, letters)) {
        return false;
    }
    const size_t length = strlen(letters);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const size_t bytes = strlen(words[i]);
        if (length >= bytes && strcmp(letters + length - bytes, words[i]) == 0 &&
            is_general(letters, length - bytes)) {
            return true;
        }
    }
    return false;
}
