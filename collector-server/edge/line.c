#include "collector-server/edge/line.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static gnutls_datum_t datum_of(const char *text)
{
    return (gnutls_datum_t){.data = (unsigned char *)(uintptr_t)text,
                            .size = (unsigned)strlen(text)};
}

sj_status sj_line_identity_init(sj_line_identity *identity, const char *certificate,
                                const char *key, sj_error *error)
{
    const gnutls_datum_t shown = datum_of(certificate);
    const gnutls_datum_t kept = datum_of(key);
    *identity = (sj_line_identity){0};
    int result = gnutls_certificate_allocate_credentials(&identity->credentials);
    if (result == GNUTLS_E_SUCCESS) {
        result = gnutls_certificate_set_x509_key_mem(identity->credentials, &shown, &kept,
                                                     GNUTLS_X509_FMT_PEM);
    }
    if (result >= 0) {
        result = gnutls_priority_init(&identity->priority,
                                      "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2", NULL);
    }
    if (result < 0) {
        sj_line_identity_deinit(identity);
        return sj_fail(error, SJ_EINVAL, "the certificate and its key cannot be used: %s",
                       gnutls_strerror(result));
    }
    return SJ_OK;
}

void sj_line_identity_deinit(sj_line_identity *identity)
{
    if (identity->credentials != NULL) {
        gnutls_certificate_free_credentials(identity->credentials);
    }
    if (identity->priority != NULL) {
        gnutls_priority_deinit(identity->priority);
    }
    *identity = (sj_line_identity){0};
}

sj_status sj_line_secure(sj_line *line, const sj_line_identity *identity)
{
    /* No session tickets: they save handshakes but cost memory for each connection. */
    if (gnutls_init(&line->tls, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL |
                                    GNUTLS_NO_TICKETS) != GNUTLS_E_SUCCESS) {
        line->tls = NULL;
        return SJ_ENOMEM;
    }
    gnutls_transport_set_int(line->tls, line->descriptor);
    gnutls_handshake_set_timeout(line->tls, 0); /* the edge has its own timeout */
    return gnutls_priority_set(line->tls, identity->priority) == GNUTLS_E_SUCCESS &&
                   gnutls_credentials_set(line->tls, GNUTLS_CRD_CERTIFICATE,
                                          identity->credentials) == GNUTLS_E_SUCCESS
               ? SJ_OK
               : SJ_ENOMEM;
}

sj_line_result sj_line_handshake(const sj_line *line)
{
    const int result = gnutls_handshake(line->tls);
    if (result == GNUTLS_E_SUCCESS) {
        return SJ_LINE_DONE;
    }
    if (result != GNUTLS_E_AGAIN && result != GNUTLS_E_INTERRUPTED) {
        return SJ_LINE_OVER;
    }
    return gnutls_record_get_direction(line->tls) == 0 ? SJ_LINE_READ : SJ_LINE_WRITE;
}

ssize_t sj_line_receive(const sj_line *line, void *bytes, size_t capacity)
{
    ssize_t got;
    if (line->tls != NULL) {
        do {
            got = gnutls_record_recv(line->tls, bytes, capacity);
        } while (got == GNUTLS_E_INTERRUPTED);
        return got > 0 ? got : got == GNUTLS_E_AGAIN ? 0 : -1;
    }
    do {
        got = recv(line->descriptor, bytes, capacity, 0);
    } while (got < 0 && errno == EINTR);
    return got > 0 ? got : got < 0 && errno == EAGAIN ? 0 : -1;
}

ssize_t sj_line_send(const sj_line *line, const void *bytes, size_t size)
{
    ssize_t sent;
    if (line->tls != NULL) {
        do {
            sent = gnutls_record_send(line->tls, bytes, size);
        } while (sent == GNUTLS_E_INTERRUPTED);
        return sent > 0 ? sent : sent == GNUTLS_E_AGAIN ? 0 : -1;
    }
    do {
        sent = send(line->descriptor, bytes, size, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent > 0 ? sent : sent < 0 && errno == EAGAIN ? 0 : -1;
}

bool sj_line_holds_bytes(const sj_line *line)
{
    return line->tls != NULL && gnutls_record_check_pending(line->tls) > 0;
}

void sj_line_close(sj_line *line)
{
    if (line->tls != NULL) {
        gnutls_deinit(line->tls);
    }
    if (line->descriptor >= 0) {
        close(line->descriptor);
    }
    *line = (sj_line){.descriptor = -1};
}
