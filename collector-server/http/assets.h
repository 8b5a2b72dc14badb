/* Files of the dashboard, embedded at build time (web-static/embed.mjs writes the table). There is
 * no file system behind a URL: what is not in the table does not exist. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_ASSETS_H
#define SJ_COLLECTOR_SERVER_HTTP_ASSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sj_asset {
    const char *path; /* exact URL path */
    const char *content_type;
    const char *etag; /* quoted, of the content */
    bool immutable;   /* its name holds a hash of its content */
    const uint8_t *data;
    size_t size; /* bytes */
    const uint8_t *gzip_data;
    size_t gzip_size; /* bytes */
} sj_asset;

extern const sj_asset sj_assets[];
extern const size_t sj_asset_count;

/* sj_asset_find returns the file of a decoded path, or NULL. Pages of the dashboard (its routes
 * are in the address bar) are all "/". Static storage; any thread. */
const sj_asset *sj_asset_find(const char *path);

#endif
