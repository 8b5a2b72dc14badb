/* The collector's own certificate. It is self-signed and created once, and every device pins it
 * when it enrols. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_CERTIFICATE_H
#define SJ_COLLECTOR_SERVER_FLEET_CERTIFICATE_H

#include "proto/base/error.h"

#include <stdbool.h>

enum { SJ_PEM_MAX_BYTES = 16 * 1024, SJ_MOMENT_BYTES = 20 };

/* Reads `<directory>/certificate.pem` and `key.pem` into buffers of SJ_PEM_MAX_BYTES. Creates the
 * directory if it does not exist, and both files (P-256, valid for ten years, mode 0600) if neither
 * exists. Blocking. Returns SJ_EIO if a file cannot be read or written, or if only one exists.
 * Returns SJ_EPERM if the directory or a file belongs to a user other than this one and root. Also
 * returns SJ_EPERM if group or others can write to one of them, or if others can read the key. */
SJ_MUST_CHECK sj_status sj_certificate_load(const char *directory, char *certificate, char *key,
                                            sj_error *error);

/* Reads a PEM file into a buffer of SJ_PEM_MAX_BYTES, terminated by NUL. Returns SJ_ENOTFOUND or
 * SJ_EIO. */
SJ_MUST_CHECK sj_status sj_certificate_read(const char *path, char *pem, sj_error *error);

/* Writes the end of a certificate's validity to `text` (SJ_MOMENT_BYTES), as "2035-01-31
 * 12:00:00" in UTC. `*is_valid` is true if the certificate is valid now. Returns SJ_ECORRUPT if
 * `pem` is not a certificate. */
SJ_MUST_CHECK sj_status sj_certificate_ends(const char *pem, char *text, bool *is_valid,
                                            sj_error *error);

#endif
