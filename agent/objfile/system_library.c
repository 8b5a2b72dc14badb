#include "agent/objfile/system_library.h"

#include <stdio.h>
#include <stdlib.h>
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

/* True if the path does not have ".", ".." or empty components. */
static bool is_plain(const char *path)
{
    return strstr(path, "//") == NULL && strstr(path, "/./") == NULL &&
           strstr(path, "/../") == NULL;
}

void sj_real_module_path(char path[PATH_MAX])
{
    char real[PATH_MAX];
    char folder[PATH_MAX];
    char named[PATH_MAX];
    const char *name = strrchr(path, '/');
    if (name == NULL || realpath(path, real) == NULL) {
        return;
    }
    const bool is_system = sj_is_system_library(real);
    if (is_plain(path) && sj_is_system_library(path) == is_system) {
        return;
    }
    snprintf(named, sizeof(named), "%.*s/", (int)(name - path), path);
    const bool fits = realpath(named, folder) != NULL &&
                      snprintf(named, sizeof(named), "%s%s", folder, name) < PATH_MAX;
    const bool keeps_name = fits && sj_is_system_library(named) == is_system;
    snprintf(path, PATH_MAX, "%s", keeps_name ? named : real);
}
