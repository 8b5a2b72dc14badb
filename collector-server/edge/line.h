/* A line: one connected descriptor, plain or with TLS (GnuTLS). Never blocks. One thread. */
#ifndef SJ_COLLECTOR_SERVER_EDGE_LINE_H
#define SJ_COLLECTOR_SERVER_EDGE_LINE_H

#include "proto/base/error.h"

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What a server shows to all its peers. */
typedef struct sj_line_identity {
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priority;
} sj_line_identity;

/* sj_line_identity_init takes a certificate and its key (PEM). SJ_EINVAL: they are not a pair;
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_line_identity_init(sj_line_identity *identity, const char *certificate,
                                              const char *key, sj_error *error);
void sj_line_identity_deinit(sj_line_identity *identity);

typedef struct sj_line {
    int descriptor;       /* owned; -1: none */
    gnutls_session_t tls; /* NULL: plain */
} sj_line;

typedef enum sj_line_result {
    SJ_LINE_DONE,
    SJ_LINE_READ,  /* wait until the descriptor can be read */
    SJ_LINE_WRITE, /* wait until it can be written */
    SJ_LINE_OVER   /* closed or broken */
} sj_line_result;

/* sj_line_secure begins TLS on a line; sj_line_shake goes on with the handshake until
 * SJ_LINE_DONE. */
SJ_MUST_CHECK sj_status sj_line_secure(sj_line *line, const sj_line_identity *identity);
sj_line_result sj_line_shake(const sj_line *line);

/* sj_line_receive gives how many bytes were read; 0: none now; -1: the line is over. A peer that
 * wants to negotiate TLS anew, or sends alerts, is over. */
ssize_t sj_line_receive(const sj_line *line, void *bytes, size_t room);

/* sj_line_send gives how many bytes were taken; 0: none now; -1: the line is over. */
ssize_t sj_line_send(const sj_line *line, const void *bytes, size_t size);

/* sj_line_holds_bytes: TLS has deciphered more than was asked for; no descriptor reports it. */
bool sj_line_holds_bytes(const sj_line *line);

/* sj_line_close waits for nobody and says no farewell. */
void sj_line_close(sj_line *line);

#endif
