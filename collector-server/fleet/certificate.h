/* The collector's own certificate: self-signed, made once, pinned by every device at its enrolment.
 */
#ifndef SJ_COLLECTOR_SERVER_FLEET_CERTIFICATE_H
#define SJ_COLLECTOR_SERVER_FLEET_CERTIFICATE_H

#include "proto/base/error.h"

#include <stdbool.h>

enum { SJ_PEM_MAX_BYTES = 16 * 1024, SJ_MOMENT_BYTES = 20 };

/* sj_certificate_load reads `<directory>/certificate.pem` and `key.pem` (mode 0600) into buffers
 * of SJ_PEM_MAX_BYTES and makes both (P-256, ten years) when neither is there. Blocking. SJ_EIO;
 * SJ_EPERM: another user than this one and root owns the directory or one of the files, or others
 * may write to the directory or read the key. */
SJ_MUST_CHECK sj_status sj_certificate_load(const char *directory, char *certificate, char *key,
                                            sj_error *error);

/* sj_certificate_read reads a PEM file into a buffer of SJ_PEM_MAX_BYTES. SJ_ENOTFOUND, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_certificate_read(const char *path, char *pem, sj_error *error);

/* sj_certificate_ends returns until when a certificate (PEM) is valid, as "2035-01-31 12:00:00" UTC
 * in `text` (SJ_MOMENT_BYTES), and whether it is valid now. SJ_ECORRUPT: it is none. */
SJ_MUST_CHECK sj_status sj_certificate_ends(const char *pem, char *text, bool *is_valid,
                                            sj_error *error);

#endif
