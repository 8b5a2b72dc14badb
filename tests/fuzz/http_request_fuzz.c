/* Tests our own parsers of what an HTTP peer sends: paths, Host and Origin headers, numbers. */
#include "collector-server/http/assets.h"
#include "collector-server/http/guard.h"
#include "collector-server/http/parameters.h"
#include "collector-server/http/route.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    int64_t id = -1;
    const sj_route *route = sj_route_find(text, &id);
    require(id >= 0);
    require(route == NULL || (strstr(route->pattern, "{id}") != NULL) == (id > 0));
    const sj_asset *asset = sj_asset_find(text);
    require(asset == NULL || strstr(text, "..") == NULL);
    require(!sj_guard_host_allowed(text, 8377) || strncasecmp(text, "127.0.0.1", 9) == 0 ||
            strncasecmp(text, "localhost", 9) == 0 || strncmp(text, "[::1]", 5) == 0);
    require(!sj_guard_origin_allowed(text, 8377) || strncmp(text, "http://", 7) == 0);
    (void)sj_guard_address_is_loopback(text);
    int64_t number = 0;
    require(!sj_parse_whole_number(text, 1000, &number) || (number >= 0 && number <= 1000));
    free(text);
    return 0;
}
