/* Computes functions.symbol_key, which matches functions of different builds when these are
 * compared. */
#include "collector-server/store/store_internal.h"

#include <string.h>

enum { BUILD_BITS = 36, OFFSET_BITS = 24 };

void sj_store_digest(uint64_t digest[2], const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; ++i) {
        digest[0] = (digest[0] ^ at[i]) * UINT64_C(0x100000001b3);
        digest[1] = (digest[1] + at[i]) * UINT64_C(0x9e3779b97f4a7c15);
        digest[1] ^= digest[1] >> 29;
    }
}

void sj_store_digest_function(uint64_t digest[2], uint64_t offset, uint32_t size_bytes,
                              const char *symbol)
{
    sj_store_digest(digest, &offset, sizeof(offset));
    sj_store_digest(digest, &size_bytes, sizeof(size_bytes));
    sj_store_digest(digest, symbol, strlen(symbol) + 1);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

int64_t sj_store_symbol_key(const char *module_path, const char *name)
{
    const char *module = file_name(module_path);
    uint64_t digest[2] = {UINT64_C(0xcbf29ce484222325), 0};
    sj_store_digest(digest, module, strlen(module) + 1);
    sj_store_digest(digest, name, strlen(name));
    return (int64_t)(digest[0] ^ digest[1]);
}

int64_t sj_store_code_key(const char *module_path, uint64_t fingerprint)
{
    const char *module = file_name(module_path);
    uint64_t digest[2] = {UINT64_C(0xcbf29ce484222325), 1};
    sj_store_digest(digest, module, strlen(module) + 1);
    sj_store_digest(digest, &fingerprint, sizeof(fingerprint));
    return (int64_t)(digest[0] ^ digest[1]);
}

int64_t sj_store_address_key(sj_slice build_id, uint64_t offset)
{
    uint64_t build = 0;
    for (size_t bits = 0; bits < BUILD_BITS; bits += 4) {
        const uint8_t byte = bits / 8 < build_id.size ? build_id.data[bits / 8] : 0;
        build = build << 4 | (bits % 8 == 0 ? byte >> 4 : byte & 15);
    }
    return (int64_t)((build << OFFSET_BITS) + offset);
}
