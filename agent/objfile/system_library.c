#include "agent/objfile/system_library.h"

#include <stddef.h>
#include <string.h>

bool sj_is_system_library(const char *path)
{
    static const char *const roots[] = {"/lib/", "/lib64/", "/lib32/", "/usr/lib/", "/usr/lib64/"};
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        if (strncmp(path, roots[i], strlen(roots[i])) == 0) {
            return true;
        }
    }
    return false;
}
