/* A line: one connected descriptor, plain or with TLS (GnuTLS). Never blocks. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_EDGE_LINE_H
#define SJ_COLLECTOR_SERVER_EDGE_LINE_H

#include "proto/base/error.h"

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The certificate that a server shows to all its peers. */
typedef struct sj_line_identity {
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priority;
} sj_line_identity;

/* Loads a certificate and its key (PEM). Returns SJ_EINVAL, with GnuTLS's reason, if they cannot
 * be used. */
SJ_MUST_CHECK sj_status sj_line_identity_init(sj_line_identity *identity, const char *certificate,
                                              const char *key, sj_error *error);
void sj_line_identity_deinit(sj_line_identity *identity);

typedef struct sj_line {
    int descriptor;       /* owned; -1: none */
    gnutls_session_t tls; /* NULL: no TLS */
} sj_line;

typedef enum sj_line_result {
    SJ_LINE_DONE,
    SJ_LINE_READ,  /* wait until the descriptor can be read */
    SJ_LINE_WRITE, /* wait until the descriptor can be written */
    SJ_LINE_OVER   /* closed or broken */
} sj_line_result;

/* sj_line_secure prepares TLS on a line, and returns SJ_ENOMEM on failure. sj_line_handshake
 * continues the handshake. Call it again until it returns SJ_LINE_DONE or SJ_LINE_OVER. */
SJ_MUST_CHECK sj_status sj_line_secure(sj_line *line, const sj_line_identity *identity);
sj_line_result sj_line_handshake(const sj_line *line);

/* Returns the number of bytes read, 0 if there are none now, or -1 if the line is closed or
 * broken. A line with TLS is also broken if the peer renegotiates or sends an alert. */
ssize_t sj_line_receive(const sj_line *line, void *bytes, size_t capacity);

/* Returns the number of bytes accepted, 0 if none can be sent now, or -1 if the line is closed
 * or broken. */
ssize_t sj_line_send(const sj_line *line, const void *bytes, size_t size);

/* True if TLS has deciphered bytes that sj_line_receive has not returned. epoll does not report
 * them. */
bool sj_line_holds_bytes(const sj_line *line);

/* Closes the line at once, without a TLS close alert. */
void sj_line_close(sj_line *line);

#endif
