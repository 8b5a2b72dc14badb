#include "collector-server/fleet/secret.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

sj_status sj_secret_make(char text[SJ_SECRET_TEXT_BYTES], sj_error *error)
{
    uint8_t bytes[(SJ_SECRET_TEXT_BYTES - 1) / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return sj_fail(error, SJ_EIO, "no random numbers: %s", strerror(errno));
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    return SJ_OK;
}

void sj_secret_hash(const char *text, uint8_t hash[SJ_SECRET_HASH_BYTES])
{
    sj_secret_hash_bytes((const uint8_t *)text, strlen(text), hash);
}

void sj_secret_hash_bytes(const uint8_t *bytes, size_t size, uint8_t hash[SJ_SECRET_HASH_BYTES])
{
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes, size, hash) != GNUTLS_E_SUCCESS) {
        memset(hash, 0, SJ_SECRET_HASH_BYTES); /* out of memory: a hash that equals no stored one */
    }
}

bool sj_secret_equal(const uint8_t *left, const uint8_t *right)
{
    volatile uint8_t different = 0;
    for (size_t i = 0; i < SJ_SECRET_HASH_BYTES; i++) {
        different |= left[i] ^ right[i];
    }
    return different == 0;
}
