/* Secrets: 32 random bytes, written as 64 hexadecimal digits, kept as their SHA-256. Any thread. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_SECRET_H
#define SJ_COLLECTOR_SERVER_FLEET_SECRET_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_SECRET_TEXT_BYTES = 65, SJ_SECRET_HASH_BYTES = 32 };

/* sj_secret_make draws a secret. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_secret_make(char text[SJ_SECRET_TEXT_BYTES], sj_error *error);

/* sj_secret_hash hashes what a peer presents, of any length; sj_secret_hash_bytes likewise, without
 * an end. */
void sj_secret_hash(const char *text, uint8_t hash[SJ_SECRET_HASH_BYTES]);
void sj_secret_hash_bytes(const uint8_t *bytes, size_t size, uint8_t hash[SJ_SECRET_HASH_BYTES]);

/* sj_secret_equal compares two hashes in a time that does not depend on them. */
bool sj_secret_equal(const uint8_t *left, const uint8_t *right);

#endif
