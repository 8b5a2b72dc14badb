#include "collector-server/http/assets.h"

#include "collector-server/http/route.h"

#include <string.h>

static const char *const page_patterns[] = {"/",      "/sessions/{id}", "/compare",  "/sql",
                                            "/fleet", "/zombies",       "/coverage", "/timeline"};

static const char *file_of_path(const char *path)
{
    for (size_t i = 0; i < sizeof(page_patterns) / sizeof(page_patterns[0]); i++) {
        int64_t id;
        if (sj_route_match(page_patterns[i], path, &id)) {
            return "/";
        }
    }
    return path;
}

const sj_asset *sj_asset_find(const char *path)
{
    const char *file = file_of_path(path);
    for (size_t i = 0; i < sj_asset_count; i++) {
        if (strcmp(sj_assets[i].path, file) == 0) {
            return &sj_assets[i];
        }
    }
    return NULL;
}
