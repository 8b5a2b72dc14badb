/* Secrets: 32 random bytes, written as 64 hexadecimal digits and stored as their SHA-256.
 * Thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_SECRET_H
#define SJ_COLLECTOR_SERVER_FLEET_SECRET_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_SECRET_TEXT_BYTES = 65, SJ_SECRET_HASH_BYTES = 32 };

/* Creates a random secret. Returns SJ_EIO if the system gives no random bytes. */
SJ_MUST_CHECK sj_status sj_secret_make(char text[SJ_SECRET_TEXT_BYTES], sj_error *error);

/* Both write a SHA-256. sj_secret_hash hashes a NUL-terminated text of any length.
 * sj_secret_hash_bytes hashes `size` bytes. */
void sj_secret_hash(const char *text, uint8_t hash[SJ_SECRET_HASH_BYTES]);
void sj_secret_hash_bytes(const uint8_t *bytes, size_t size, uint8_t hash[SJ_SECRET_HASH_BYTES]);

/* True if two hashes (SJ_SECRET_HASH_BYTES) are equal. Takes constant time. */
bool sj_secret_equal(const uint8_t *left, const uint8_t *right);

#endif
