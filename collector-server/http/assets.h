/* Files of the dashboard, embedded at build time (web-static/embed.mjs writes the table). The
 * server does not open files by URL: it sends only the files of this table. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_ASSETS_H
#define SJ_COLLECTOR_SERVER_HTTP_ASSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sj_asset {
    const char *path; /* exact URL path */
    const char *content_type;
    const char *etag; /* quoted; depends on the content */
    bool immutable;   /* may be cached for ever, because its name contains a hash of its content */
    const uint8_t *data;
    size_t size; /* bytes */
    const uint8_t *gzip_data;
    size_t gzip_size; /* bytes */
} sj_asset;

extern const sj_asset sj_assets[];
extern const size_t sj_asset_count;

/* Returns the file of a decoded URL path, or NULL. For the path of any page of the dashboard,
 * returns the file of "/", whose script shows the page. Static storage; thread-safe. */
const sj_asset *sj_asset_find(const char *path);

#endif
